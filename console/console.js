"use strict";

// The page is complete without this: it only asks for its own changing parts again, and puts those in that have changed.
(() => {
  const every = 2000;
  const refreshes = document.getElementById("refreshes");
  const problem = document.getElementById("problem");
  const told = document.getElementById("told");
  document.getElementById("refresh").hidden = false;

  const reading = () => { const s = document.getSelection(); return s && !s.isCollapsed; }; // nothing moves below what is being copied
  const stateOf = (root) => root.querySelector("[data-state]")?.dataset.state;

  function put(fresh, old) {
    if (fresh.innerHTML === old.innerHTML && fresh.hidden === old.hidden) return;
    const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
    const scrolled = [...old.querySelectorAll(".scroll")].map((e) => e.scrollLeft);
    const open = [...old.querySelectorAll("details")].map((e) => e.open);
    old.replaceChildren(...fresh.childNodes);
    old.hidden = fresh.hidden;
    old.querySelectorAll("details").forEach((e, i) => { e.open = open[i] ?? e.open; });
    old.querySelectorAll(".scroll").forEach((e, i) => { e.scrollLeft = scrolled[i] ?? 0; });
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }

  async function refresh() {
    const answer = await fetch("live" + location.search, { signal: AbortSignal.timeout(10000) });
    if (!answer.ok) throw new Error(answer.status);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const before = stateOf(document);
    for (const part of fresh.querySelectorAll("[data-live], #as-of")) {
      const old = document.getElementById(part.id);
      if (old) put(part, old);
    }
    document.title = fresh.title;
    if (stateOf(document) !== before) told.textContent = "The instance is " + stateOf(document) + ".";
  }

  async function loop() {
    if (refreshes.checked && !document.hidden && !reading()) {
      try {
        await refresh();
        problem.textContent = "";
      } catch {
        problem.textContent = "The instance doesn't answer: this is what it was at the time below.";
      }
    }
    setTimeout(loop, every);
  }
  setTimeout(loop, every);
})();
