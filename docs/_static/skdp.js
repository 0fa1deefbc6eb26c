// Names for screen readers where the theme and the gallery have none.
document.addEventListener("DOMContentLoaded", () => {
  // "Search Ctrl+K" is read as it is seen
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.removeAttribute("aria-label");
  }
  // what unfolds a part of the sidebar has an icon and no words
  for (const summary of document.querySelectorAll(".bd-sidebar-primary summary")) {
    const link = summary.closest("li").querySelector("a");
    summary.setAttribute("aria-label", `Pages below: ${link.textContent.trim()}`);
  }
});
