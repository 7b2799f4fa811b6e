// How the owner reads changes: the old text above the new one, or beside it.

const KEY = 'bridge.split';

class DiffLook {
  split: boolean = $state(stored());

  choose(split: boolean): void {
    this.split = split;
    try {
      localStorage.setItem(KEY, split ? 'yes' : 'no');
    } catch {
      // Then it is chosen until the page is loaded anew.
    }
  }
}

function stored(): boolean {
  try {
    return localStorage.getItem(KEY) === 'yes';
  } catch {
    return false;
  }
}

export const diffLook = new DiffLook();
