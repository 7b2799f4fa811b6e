// Shows the notices of Needs you by the browser, and the badge in the icon of its tab (PGE-14).

import { page } from '../../lib/page.svelte';
import { needs } from './needs.svelte';
import { Announcer } from './notices';

/** What the browser allows: `default` before it was asked, `unsupported` if it has no notices. */
export type Permission = NotificationPermission | 'unsupported';

const isSupported = () => typeof Notification !== 'undefined';

class Notifier {
  permission: Permission = $state(isSupported() ? Notification.permission : 'unsupported');
  #announcer = new Announcer();

  /** Asks the browser for its permission. Call it from a click. */
  async ask(): Promise<void> {
    if (isSupported()) this.permission = await Notification.requestPermission();
  }

  /** Shows the notices that are due now. */
  update(): void {
    const { state } = page;
    if (state === null || page.stale) return;
    if (isSupported()) this.permission = Notification.permission; // changed in the browser's settings
    const { noticesFrom } = state;
    const allowed = noticesFrom !== 0 && Date.now() >= noticesFrom && this.permission === 'granted';
    const watched = document.visibilityState === 'visible' && document.hasFocus();
    for (const { sort, title, text, place } of this.#announcer.due(
      needs.open,
      allowed,
      watched,
      Date.now(),
    )) {
      // The tag replaces the notice of another tab.
      const shown = new Notification(title, {
        body: text,
        tag: `bridge-${sort}`,
        icon: '/assets/bridge.svg',
      });
      shown.onclick = () => {
        window.focus();
        page.go(place);
        shown.close();
      };
    }
  }
}

export const notifier = new Notifier();
