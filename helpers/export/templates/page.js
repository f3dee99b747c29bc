// What a page needs of a script: search over all pages, a switch of the theme, contents that follow, links at headings.
// PAGES, set before it, holds for each page its file and title, and anchor, heading and text of its sections.
const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
const kept = { get theme() { try { return localStorage.theme; } catch { return null; } },
  set theme(name) { try { localStorage.theme = name; } catch { /* a page without storage: for this visit */ } } };
const isDark = () => (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
if (kept.theme) root.dataset.theme = kept.theme;
const theme = document.querySelector("button.theme");
theme.hidden = false;
theme.addEventListener("click", () => { root.dataset.theme = kept.theme = isDark() ? "light" : "dark"; });

const field = document.querySelector("search input"), list = document.querySelector("search ol");
document.querySelector("search").hidden = false;
const HITS = 12, AROUND = 60;  // results, and letters on each side of a word
const escaped = text => Object.assign(document.createElement("i"), {textContent: text}).innerHTML;
function found(words) {
  const hits = [], phrase = words.join(" ");
  for (const {file, title, sections} of PAGES) for (const [anchor, heading, text] of sections) {
    const name = heading.toLowerCase(), all = `${title} ${heading} ${text}`.toLowerCase();
    if (!words.every(word => all.includes(word))) continue;
    const points = 50 * (name === phrase) + 20 * name.includes(phrase) + 5 * all.split(phrase).length;
    const place = text.toLowerCase();
    hits.push({ file, title, anchor, heading, text, points, at: Math.max(place.indexOf(phrase), place.indexOf(words[0])) });
  }
  return hits.sort((one, other) => other.points - one.points).slice(0, HITS);
}
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = words.length && field.value.trim().length > 1 ? found(words) : [];
  list.innerHTML = hits.map(({ file, title, anchor, heading, text, at }) => {
    const begin = Math.max(0, at - AROUND), around = text.slice(begin, Math.max(0, at) + AROUND + words[0].length);
    return `<li><a href="${file}#${anchor}"><b>${escaped(heading)}</b> <small>${heading === title ? "" : escaped(title)}</small><br>${begin ? "…" : ""}${escaped(around)}…</a></li>`;
  }).join("") || (words.length ? "<li>Nothing is found.</li>" : "");
});
field.addEventListener("keydown", event => {
  if (event.key === "Escape") field.value = list.innerHTML = "";
  if (event.key === "Enter") list.querySelector("a")?.click();
});
list.addEventListener("click", () => { field.value = list.innerHTML = ""; });
document.addEventListener("keydown", event => {
  if (event.key !== "/" || event.target.matches("input, select, textarea, [contenteditable]")) return;
  event.preventDefault();
  field.focus();
});

const headings = [...document.querySelectorAll("main :is(h2, h3)[id]")], contents = document.querySelector(".contents");
for (const heading of headings) {
  const link = Object.assign(document.createElement("a"), {className: "anchor", href: `#${heading.id}`, textContent: "#"});
  link.setAttribute("aria-label", "Link to this section");
  heading.append(" ", link);
}
if (contents) {
  const links = new Map([...contents.querySelectorAll("a")].map(link => [link.hash.slice(1), link]));
  const follow = () => {
    const here = headings.findLast(heading => heading.getBoundingClientRect().top < innerHeight / 3);
    const link = here && links.get(here.id);
    if (link?.hasAttribute("aria-current")) return;
    contents.querySelector("[aria-current]")?.removeAttribute("aria-current");
    link?.setAttribute("aria-current", "location");
    if (getComputedStyle(contents).position === "fixed") link?.scrollIntoView({block: "nearest"});
  };
  addEventListener("scroll", follow, {passive: true});
  follow();
}

// On a teacher's paper nothing is folded; on a reader's, what comes out of a guess and the solutions stay so.
const folds = [...document.querySelectorAll("details:not([open])")];
if (folds.some(fold => fold.textContent.startsWith("For the teacher"))) {
  addEventListener("beforeprint", () => folds.forEach(fold => { fold.open = true; }));
  addEventListener("afterprint", () => folds.forEach(fold => { fold.open = false; }));
}
