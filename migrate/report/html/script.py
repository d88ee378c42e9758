"""What the page does beside showing: the switch of the theme, keys, and opening what a link leads into.

Without it the page is whole: `details` fold by themselves, links lead to their lines.
"""

SCRIPT = """
(() => {
  "use strict";
  const root = document.documentElement, key = "migrate-report-theme";
  const kept = () => { try { return localStorage.getItem(key); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem(key, theme); } catch { /* a page from the disk may not */ } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const now = () => root.dataset.theme || (system.matches ? "dark" : "light");
  const theme = kept();
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;

  const open = (element) => {
    for (let above = element; above; above = above.parentElement) {
      if (above.tagName === "DETAILS") above.open = true;
    }
  };
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) { open(target); target.scrollIntoView({ block: "center" }); }
  };

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const name = () => { button.textContent = now() === "dark" ? "Light theme" : "Dark theme"; };
    const toggle = () => {
      root.dataset.theme = now() === "dark" ? "light" : "dark";
      keep(root.dataset.theme);
      name();
    };
    button.hidden = false;
    button.addEventListener("click", toggle);
    system.addEventListener("change", name);
    name();

    const stops = [...document.querySelectorAll("[data-stop]")];
    const at = () => {
      const focused = document.activeElement && document.activeElement.closest("[data-stop]");
      if (focused) return stops.indexOf(focused);
      const below = stops.findIndex((stop) => stop.getBoundingClientRect().top > 70);
      return (below < 0 ? stops.length : below) - 0.5;
    };
    const go = (by) => {
      const here = at();
      const next = by > 0 ? Math.floor(here) + 1 : Math.ceil(here) - 1;
      const stop = stops[next];
      if (!stop) return;
      open(stop);
      stop.focus({ preventScroll: true });
      stop.scrollIntoView({ block: "center" });
    };
    let folds = false;
    const all = () => {
      folds = !folds;
      for (const each of document.querySelectorAll("details.gap")) each.open = folds;
    };
    const keys = { j: () => go(1), k: () => go(-1), t: toggle, e: all };
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
      const act = keys[event.key];
      if (act) { act(); event.preventDefault(); }
    });
    addEventListener("hashchange", reveal);
    addEventListener("beforeprint", () => {
      for (const each of document.querySelectorAll("details.file")) each.open = true;
    });
    if (location.hash) reveal();
  });
})();
"""
