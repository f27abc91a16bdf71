// What the pages do beyond being read: search, copy buttons, and examples for the address that the browser uses.

for (const base of document.querySelectorAll("pre s")) base.textContent = location.origin;

for (const panel of document.querySelectorAll(".panel")) {
  const code = panel.querySelector("pre code");
  if (!code || !navigator.clipboard) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  panel.querySelector(".bar").append(button);
}

// The operation that is being read, in the navigation.
const links = new Map();
for (const link of document.querySelectorAll("nav .operations a")) {
  const id = decodeURIComponent(link.hash.slice(1));
  links.set(id, [...(links.get(id) ?? []), link]);
}
const seen = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      for (const [id, all] of links) for (const link of all) link.classList.toggle("here", id === target.id);
    }
  },
  { rootMargin: "-10% 0px -80% 0px" },
);
for (const section of document.querySelectorAll("section.op")) seen.observe(section);

// Search. The titles and the words behind them are loaded when somebody is about to type.
const box = document.querySelector(".search");
const input = box.querySelector("input");
const list = box.querySelector("#found");
box.hidden = false;

const plain = (text) => text.toLowerCase();
const get = (path) => fetch(path).then((reply) => reply.json());

let index, entries;
const titles = () => (index ??= get("/docs/index.json"));
const load = () => (entries ??= Promise.all([titles(), get("/docs/words.json")]).then(([index, words]) => all(index, words)));
let chosen = -1;

const ranks = { section: 0, operation: 1, object: 2, guide: 3, event: 3, field: 4 };

/** Returns everything that can be found: the titles, the fields of objects and the events. */
function all(index, { words, fields, events }) {
  const found = [...index];
  for (const [path, names] of Object.entries(fields))
    for (const name of names) found.push(["field", name, `Field of the ${path.split("#")[1]} object`, path]);
  for (const [name, meaning] of events.all) found.push(["event", name, meaning, `${events.path}#${name}`]);
  return found.map(([kind, title, detail, path]) => {
    const small = { name: plain(title), rest: plain(`${detail} ${path}`), words: words[path] ?? "" };
    return { kind, title, detail, path, ...small };
  });
}

/** Returns the best entries: every word occurs in them or in the text below, the title counts most. */
function find(entries, query) {
  const words = plain(query).split(/\s+/).filter(Boolean);
  const scored = [];
  for (const entry of entries) {
    const { name, rest } = entry;
    let score = 0;
    for (const word of words) {
      if (name === word) score += 12;
      else if (name.startsWith(word)) score += 8;
      else if (name.includes(word)) score += 5;
      else if (rest.includes(word)) score += 2;
      else if (entry.words.includes(word)) score += 1;
      else score = -Infinity;
    }
    if (score > 0) scored.push([score - ranks[entry.kind] / 10 - name.length / 1000, entry]);
  }
  return scored.sort((one, other) => other[0] - one[0]).slice(0, 20).map(([, entry]) => entry);
}

function close() {
  list.hidden = true;
  chosen = -1;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
}

function choose(place) {
  const items = [...list.querySelectorAll("[role=option]")];
  if (items.length === 0) return;
  chosen = (place + items.length) % items.length;
  items.forEach((item, number) => item.setAttribute("aria-selected", String(number === chosen)));
  items[chosen].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", items[chosen].id);
}

async function show() {
  const query = input.value.trim();
  if (!query) return close();
  const found = find(await load(), query);
  if (query !== input.value.trim()) return;
  list.replaceChildren(
    ...found.map(({ kind, title, detail, path }, number) => {
      const item = document.createElement("li");
      item.role = "option";
      item.id = `found-${number}`;
      const link = document.createElement("a");
      link.href = path;
      link.tabIndex = -1;
      const [small, em] = [document.createElement("small"), document.createElement("em")];
      small.textContent = detail;
      em.textContent = kind;
      link.append(title, small, em);
      item.append(link);
      return item;
    }),
  );
  if (found.length === 0) {
    const none = document.createElement("li");
    none.className = "none";
    none.textContent = "Nothing found.";
    list.append(none);
  }
  list.hidden = false;
  input.setAttribute("aria-expanded", "true");
  choose(0);
}

input.addEventListener("focus", load);
input.addEventListener("input", show);
input.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") choose(chosen + 1);
  else if (event.key === "ArrowUp") choose(chosen - 1);
  else if (event.key === "Escape") close();
  else if (event.key === "Enter") list.querySelector("[aria-selected=true] a")?.click();
  else return;
  event.preventDefault();
});
list.addEventListener("click", close);
document.addEventListener("click", (event) => {
  if (!box.contains(event.target)) close();
});
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  input.focus();
});

// Links to operations from when the reference was one page.
if (location.pathname === "/docs" && location.hash.length > 1) {
  const id = location.hash.slice(1).replace(/^schema-/, "");
  titles().then((entries) => {
    const there = entries.find(([kind, , , path]) => kind !== "guide" && path.endsWith(`#${id}`));
    if (there && !document.getElementById(id)?.closest(".topic > h2")) location.replace(there[3]);
  });
}
