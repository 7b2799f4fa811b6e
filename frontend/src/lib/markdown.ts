// The only place that makes HTML from text. What agents write is hostile
// input: HTML in it stays text (markdown-it), what is left passes a short list
// of elements (DOMPurify), images are never fetched, and links say where they
// go and open outside.

import DOMPurify from 'dompurify';
import MarkdownIt from 'markdown-it';
import { visible } from './visible';

const parser = new MarkdownIt({ html: false, linkify: false, breaks: true, typographer: false });
parser.disable('image');
parser.validateLink = (url) => /^https?:\/\//i.test(url.trim());

// Tables say by `align` how a column stands: a style would pass too much.
for (const cell of ['th_open', 'td_open'] as const) {
  parser.renderer.rules[cell] = (tokens, at, options, _env, renderer) => {
    const side = /^text-align:(left|center|right)$/.exec(String(tokens[at]?.attrGet('style')))?.[1];
    if (tokens[at] !== undefined) tokens[at].attrs = side === undefined ? null : [['align', side]];
    return renderer.renderToken(tokens, at, options);
  };
}

const ALLOWED_TAGS = (
  'p br strong em s code pre blockquote ul ol li a h1 h2 h3 h4 h5 h6 hr ' + 'table thead tbody tr th td'
).split(' ');

/** The text as safe nodes, ready to be put into the page. */
export function markdown(text: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(parser.render(visible(text)), {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ['href', 'start', 'align'],
    RETURN_DOM_FRAGMENT: true,
  });
  fragment.querySelectorAll('a').forEach(openOutside);
  // Headings of a message must not join the headings of the page.
  fragment.querySelectorAll('h1, h2, h3, h4, h5, h6').forEach(asStrongParagraph);
  fragment.querySelectorAll('li').forEach(tickTask);
  showEntities(fragment);
  return fragment;
}

/** A hidden character that was written as an entity is text only now: `&#x202e;`. */
function showEntities(fragment: DocumentFragment): void {
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode())
    node.nodeValue = visible(node.nodeValue ?? '');
}

function openOutside(link: HTMLAnchorElement): void {
  link.target = '_blank';
  link.rel = 'noopener noreferrer';
  link.title = link.href;
  if (link.textContent.trim() === link.getAttribute('href')) return;
  const where = document.createElement('span');
  where.className = 'link-host';
  where.textContent = ` (${new URL(link.href).host})`;
  link.append(where);
}

/** "[ ] to do" and "[x] done" at the beginning of an item, as a list of tasks has them. */
function tickTask(item: HTMLLIElement): void {
  const start = document.createTreeWalker(item, NodeFilter.SHOW_TEXT).nextNode();
  const task = /^\s*\[([ xX])\] /.exec(start?.nodeValue ?? '');
  if (start === null || task === null) return;
  start.nodeValue = `${task[1] === ' ' ? '☐' : '☑'} ${start.nodeValue?.slice(task[0].length) ?? ''}`;
  item.classList.add('task');
}

function asStrongParagraph(heading: Element): void {
  const paragraph = document.createElement('p');
  const strong = document.createElement('strong');
  strong.append(...heading.childNodes);
  paragraph.append(strong);
  heading.replaceWith(paragraph);
}
