/**
 * Pairs of texts that lie over each other, seen from inside the page. Only what
 * is visible counts: a text scrolled out of its box covers nothing. It runs in
 * the browser, so it must not use anything outside itself.
 */
export function overlaps(): string[] {
  interface Box {
    text: string;
    element: Element;
    left: number;
    top: number;
    right: number;
    bottom: number;
  }

  const visible = (element: Element, rect: DOMRect): Box | null => {
    const box = {
      text: (element.textContent ?? '').trim().slice(0, 30),
      element,
      left: rect.left,
      top: rect.top,
      right: rect.right,
      bottom: rect.bottom,
    };
    if (!element.checkVisibility()) return null; // inside a closed <details>, say
    for (let at: Element | null = element; at !== null; at = at.parentElement) {
      if (at.matches('.sr-only, .skip')) return null;
      const style = getComputedStyle(at);
      if (style.visibility === 'hidden') return null;
      if (style.overflowY === 'visible') continue;
      const clip = at.getBoundingClientRect();
      box.left = Math.max(box.left, clip.left);
      box.top = Math.max(box.top, clip.top);
      box.right = Math.min(box.right, clip.right);
      box.bottom = Math.min(box.bottom, clip.bottom);
    }
    return box.right - box.left > 1 && box.bottom - box.top > 1 ? box : null;
  };

  const boxes: Box[] = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if ((node.textContent ?? '').trim() === '' || node.parentElement === null) continue;
    if (node.parentElement.closest('select, noscript, script') !== null) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const box = visible(node.parentElement, rect);
      if (box !== null) boxes.push(box);
    }
  }
  // What lies over a drawing on purpose has no face of its own.
  for (const control of document.querySelectorAll('button:not([data-over]), input, select, textarea')) {
    const box = visible(control, control.getBoundingClientRect());
    if (box !== null) boxes.push(box);
  }

  const found: string[] = [];
  boxes.forEach((a, i) => {
    for (const b of boxes.slice(i + 1)) {
      if (a.element.contains(b.element) || b.element.contains(a.element)) continue;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      // Line boxes of neighbours may touch by their leading.
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 4) found.push(`"${a.text}" over "${b.text}"`);
    }
  });
  return found;
}
