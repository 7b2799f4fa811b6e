// The only place that makes HTML from text. What agents write is hostile
// input: HTML in it stays text (markdown-it), what is left passes a short list
// of elements (DOMPurify), images are never fetched, and links say where they
// go and open outside.

import DOMPurify from 'dompurify';
import MarkdownIt from 'markdown-it';

const parser = new MarkdownIt({ html: false, linkify: false, breaks: true, typographer: false });
parser.disable('image');
parser.validateLink = (url) => /^https?:\/\//i.test(url.trim());

const ALLOWED_TAGS = (
  'p br strong em s code pre blockquote ul ol li a h1 h2 h3 h4 h5 h6 hr ' + 'table thead tbody tr th td'
).split(' ');

/** The text as safe nodes, ready to be put into the page. */
export function markdown(text: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(parser.render(text), {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ['href', 'start'],
    RETURN_DOM_FRAGMENT: true,
  });
  fragment.querySelectorAll('a').forEach(openOutside);
  // Headings of a message must not join the headings of the page.
  fragment.querySelectorAll('h1, h2, h3, h4, h5, h6').forEach(asStrongParagraph);
  return fragment;
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

function asStrongParagraph(heading: Element): void {
  const paragraph = document.createElement('p');
  const strong = document.createElement('strong');
  strong.append(...heading.childNodes);
  paragraph.append(strong);
  heading.replaceWith(paragraph);
}
