// Names and roles for screen readers, where the theme has none or has outdated ones.
document.addEventListener("DOMContentLoaded", () => {
  // all the words of the button, which a narrow page hides
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim());
  }
  // what unfolds a part of the sidebar has an icon and no words
  for (const summary of document.querySelectorAll(".bd-sidebar-primary summary")) {
    const link = summary.closest("li").querySelector("a");
    summary.setAttribute("aria-label", `Pages below: ${link.textContent.trim()}`);
  }
  // a header and a table of contents on the same page
  for (const [where, name] of [[".bd-header nav", "Site"], ["nav.contents", "Parts of this page"]]) {
    for (const nav of document.querySelectorAll(where)) {
      nav.setAttribute("aria-label", name);
    }
  }
  // entries of references: their role is deprecated, and their list has other children
  for (const entry of document.querySelectorAll(".citation-list, .citation")) {
    entry.removeAttribute("role");
  }
});
