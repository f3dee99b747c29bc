// The layout of a deck, and its keys. What is measured here is what is shown.
await Promise.all([...document.images].map(image => image.decode()));
const isOnPaper = /print-pdf/i.test(location.search);
if (isOnPaper) {  // there nobody guesses
  [...document.querySelectorAll("[data-view] button")].filter(button => button.textContent.endsWith("without a guess")).forEach(button => button.click());
}

// Letters, in pixels of 720: of prose and of code. A slide gets the first pair with which it fits.
const SIZES = [[30, 26], [28, 25], [27, 24], [26, 23], [25, 22], [24, 21], [24, 20], [23, 19], [22, 18], [21, 18], [20, 18]];
const ROOMY = 6, USUAL = 8, CLOSE = 9, SMALLEST = 11;  // how many of them are tried, the last one where nothing else helps
const LARGE = 0.7 * 720, WIDE = 0.8 * 1280, SHARP = 0.74, READABLE = 0.5 * 720;  // of a picture
const SHORT = 50;  // words of a question
const range = new Range(), box = part => part.getBoundingClientRect();
const edge = part => box(part).bottom - parseFloat(getComputedStyle(part).paddingBottom) + 0.5;
const end = part => (range.selectNodeContents(part), box(range).bottom);
const over = part => end(part) > edge(part) || box(range).right > box(part).right - 44;  // a space may hang at the end
const parts = slide => [...slide.children].filter(part => !part.matches("aside"));
const notes = slide => [...slide.children].filter(part => part.matches("aside"));
const heading = slide => parts(slide).find((part, place) => place === 0 && part.matches("h1, h2, h3"));
const hasOwnHeading = slide => heading(slide) && !("again" in heading(slide).dataset);
const repeated = found => Object.assign(found.cloneNode(true), {id: ""});

function recall(slide) {  // what a guess is about, unless it stands on the same slide
  const shown = [...slide.querySelectorAll(".code:not(.recalled)")].map(code => code.textContent);
  for (const code of slide.querySelectorAll(".recalled")) code.hidden = shown.some(text => text.includes(code.textContent.trim()));
}
function fits(slide, pairs) {  // with the largest letters of these with which it does, and lines of code stay whole
  recall(slide);
  const longest = Math.max(1, ...[...slide.querySelectorAll("pre")].flatMap(code => code.textContent.split("\n").map(line => line.length)));
  for (const [prose, code] of SIZES.slice(0, pairs)) {
    slide.style.setProperty("--prose-size", `${prose}px`);
    slide.style.setProperty("--code-size", `${Math.max(18, Math.min(code, Math.floor(1138 / 0.6025 / longest)))}px`);
    if (!over(slide) && (!slide.matches(".picture, .pictured") || isLarge(slide))) return true;
  }
  return false;
}
function isLarge(slide) {  // whether a picture is large enough to be read, and so is its text of 8 points
  const image = slide.querySelector(".output > img"), {width, height} = box(image ?? slide.querySelector("[data-view]"));
  if (!image) return width >= WIDE || height >= LARGE;
  const scale = Math.min(width / image.naturalWidth, height / image.naturalHeight);
  if (slide.matches(".pictured")) return scale * image.naturalHeight >= READABLE;
  return scale >= SHARP && (scale * image.naturalWidth >= WIDE || scale * image.naturalHeight >= LARGE);
}

// Two slides become one, if what they show fits together.
const body = slide => parts(slide).filter(part => part !== heading(slide));
function tried(moved, place, slide, pairs) {  // moved, by `place`, unless the slide does not hold it with the first `pairs`
  const from = moved[0].parentElement, before = moved[0].previousSibling, after = moved.at(-1).nextSibling;
  place(moved);
  if (fits(slide, pairs)) return true;
  before ? before.after(...moved) : after ? after.before(...moved) : from.append(...moved);
  return false;
}
function took(slide, other, first) {  // the other one is empty now; its heading stands above, if it came first
  if (first) heading(slide)?.replaceWith(heading(other) ?? "");
  slide.append(...notes(other));
  other.remove();
  return true;
}
function join(first, second) {
  const one = body(first), two = body(second);
  if (hasOwnHeading(second) || !one.length || !two.length || first.matches(".exercise, .solution") || heading(first)?.matches("h1")) return false;
  if (second.matches(".guess")) return first.matches(".text") && intoGuess(first, second, one);
  if (second.matches(".picture")) {
    const pairs = one.every(part => part.matches("p")) ? SMALLEST : USUAL;
    return first.matches(".text, .answer") && tried(one, moved => two[0].before(...moved), second, pairs) && took(second, first, true);
  }
  if (!second.matches(".text")) return false;
  if (first.matches(".guess")) return intoAnswer(first, second, two);
  const isTakeaway = two.every(part => part.matches("blockquote"));
  if (first.matches(".picture") && !isTakeaway) return false;
  return tried(two, moved => one.at(-1).after(...moved), first, isTakeaway ? CLOSE : USUAL) && took(first, second);
}
function intoGuess(first, guess, blocks) {  // all that leads to the question; or else, to a short one, what stands last: code or a table
  const asked = body(guess), place = moved => asked[0].before(...moved);
  if (tried(blocks, place, guess, CLOSE)) return took(guess, first, true);
  const words = asked.filter(part => part.matches("p")).map(part => part.textContent).join(" ").split(/\s+/).length;
  let from = blocks.findLastIndex((part, at) => part.matches(".code, .outputs:has(table), table, ul") && !blocks[at - 1]?.matches(".code"));
  if (blocks[from - 1]?.textContent.endsWith(":")) from -= 1;
  if (from > 0 && words < SHORT) tried(blocks.slice(from), place, guess, SMALLEST);
  return false;
}
function intoAnswer(guess, second, blocks) {  // a takeaway comes with the answer, anything else after one more key
  if (guess.matches(".pictured")) return false;
  const fragment = [...guess.querySelectorAll(".fragment")].at(-1);
  if (blocks.every(part => part.matches("blockquote"))) return tried(blocks, moved => fragment.append(...moved), guess, CLOSE) && took(guess, second);
  const further = Object.assign(document.createElement("div"), {className: "fragment"});
  fragment.after(further);
  if (tried(blocks, moved => further.append(...moved), guess, ROOMY)) return took(guess, second);
  further.remove();
  return false;
}
function showPicture(picture, guess) {  // once more, where a question is about it
  const asked = body(guess).find(part => /\bread \w+ off\b/i.test(part.textContent)), shown = picture.querySelector(".outputs");
  if (!picture.matches(".picture") || !asked) return;
  asked.after(shown.cloneNode(true));
  guess.classList.add("pictured");
}

// One that is too tall goes on below, from its last table, or else from the block that does not fit any more.
function split(slide) {
  const hasRoom = fits(slide, slide.matches(".text") ? CLOSE : SMALLEST);
  if (hasRoom || slide.matches(".picture")) return null;
  const blocks = parts(slide).filter(part => part !== heading(slide))
    .flatMap(part => part.matches(".fragment:first-child") ? [...part.children] : part).slice(1);
  const first = blocks.findLast(part => part.matches(".outputs:has(table)") && box(part).top <= edge(slide))
    ?? blocks.find(part => box(part).bottom > edge(slide));
  if (!first) return null;
  const below = document.createElement("section"), said = notes(slide);
  below.className = slide.matches(".guess") ? "text" : slide.className;
  said.forEach(part => part.remove());
  range.selectNodeContents(slide);
  range.setStartBefore(first);
  below.append(range.extractContents());
  below.firstElementChild.classList.remove("fragment");  // it is what this slide shows
  slide.append(...said);
  below.append(...said.map(part => part.cloneNode(true)));
  slide.after(below);
  if (heading(slide)) below.prepend(repeated(heading(slide)));
  fits(slide, SMALLEST);
  return below;
}

document.body.classList.add("measuring");
for (const stack of document.querySelectorAll(".slides > section")) {
  let title = null, teacher = null;
  for (const slide of stack.children) {
    title = heading(slide) || title;
    if (heading(slide) || !title) continue;
    slide.prepend(repeated(title));
    heading(slide).dataset.again = "";
  }
  for (const slide of stack.querySelectorAll(":scope > .picture")) {  // what leads to a picture is said, if it takes its room
    const leads = parts(slide).filter(part => part.matches("p"));
    if (leads.length === 0 || fits(slide, USUAL)) continue;
    const said = Object.assign(document.createElement("aside"), {className: "notes"});
    said.append(...leads);
    slide.append(said);
  }
  const divided = selector => { for (const slide of [...stack.querySelectorAll(selector)]) for (let part = slide; part;) part = split(part); };
  divided(":scope > :not(.guess, .picture)");
  for (const guess of stack.querySelectorAll(":scope > .guess")) {
    if (guess.previousElementSibling) showPicture(guess.previousElementSibling, guess);
    while (guess.previousElementSibling && join(guess.previousElementSibling, guess));
  }
  for (const picture of stack.querySelectorAll(":scope > .picture")) if (picture.nextElementSibling) join(picture, picture.nextElementSibling);
  for (const picture of stack.querySelectorAll(":scope > .picture")) if (picture.previousElementSibling) join(picture.previousElementSibling, picture);
  for (const slide of [...stack.children]) while (slide.isConnected && slide.nextElementSibling && join(slide, slide.nextElementSibling));
  divided(":scope > section");
  for (const slide of stack.children) {  // what to ask holds for all slides of a section, and comes first
    teacher = slide.querySelector(".teacher") ?? teacher;
    const own = slide.querySelector(".teacher") ?? teacher?.cloneNode(true);
    if (own) slide.insertBefore(own, slide.querySelector("aside"));
  }
}
for (const view of document.querySelectorAll("section.picture [data-view]")) {  // shrunk a little, where it is too tall
  for (let zoom = 1; over(view.closest("section")) && zoom > 0.8; zoom -= 0.01) view.style.zoom = zoom;
}
document.body.classList.remove("measuring");

// Space and Enter unfold what is folded and has the focus; after a click the keys are for the slides again. The key with
// the question mark is another one on each keyboard; reveal.js knows that of one.
const onSummary = event => [" ", "Enter"].includes(event.key) && document.activeElement.matches("summary");
document.addEventListener("click", event => event.detail && event.target.closest("summary")?.blur());
// So too after a drag or a click in a picture, unless a number is typed there.
function giveBack() {
  const at = document.activeElement;
  if (at.closest("[data-view]") && !at.matches("input[type=text], select")) at.blur();
}
for (const kind of ["pointerup", "click"]) document.addEventListener(kind, event => (event.detail || kind === "pointerup") && setTimeout(giveBack));
function isForReveal(event) {
  if (event.key === "?") Reveal.toggleHelp();
  return event.key !== "?" && !onSummary(event);
}
Reveal.initialize({
  width: 1280, height: 720, margin: 0, controls: false, center: false, transition: "none", hash: true, hashOneBasedIndex: true, slideNumber: "c/t",
  keyboardCondition: isForReveal, plugins: [RevealNotes],
});
