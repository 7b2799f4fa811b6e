// How the page looks: light, dark or as the system says, and how close its rows stand. The
// choices are kept in this browser only.

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'bridge.theme';

function stored(): Theme {
  const value = localStorage.getItem(KEY);
  return value === 'light' || value === 'dark' ? value : 'system';
}

class ThemeChoice {
  choice: Theme = $state(stored());
  #system = matchMedia('(prefers-color-scheme: dark)');

  start(): void {
    this.#system.addEventListener('change', () => this.#apply());
    this.#apply();
  }

  choose(theme: Theme): void {
    this.choice = theme;
    localStorage.setItem(KEY, theme);
    this.#apply();
  }

  #apply(): void {
    const dark = this.choice === 'system' ? this.#system.matches : this.choice === 'dark';
    document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
  }
}

export const theme = new ThemeChoice();

export type Density = 'comfortable' | 'compact';
const DENSITY = 'bridge.density';

class DensityChoice {
  choice: Density = $state(localStorage.getItem(DENSITY) === 'compact' ? 'compact' : 'comfortable');

  choose(density: Density): void {
    this.choice = density;
    localStorage.setItem(DENSITY, density);
    this.apply();
  }

  apply(): void {
    document.documentElement.dataset['density'] = this.choice;
  }
}

export const density = new DensityChoice();
