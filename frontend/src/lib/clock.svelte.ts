// A clock for what is counted in seconds; the page's own moves every few.

/** Ticks while the component lives that asks for it. */
export function everySecond(): { readonly now: number } {
  let now = $state(Date.now());
  $effect(() => {
    const timer = setInterval(() => (now = Date.now()), 1000);
    return () => clearInterval(timer);
  });
  return {
    get now() {
      return now;
    },
  };
}
