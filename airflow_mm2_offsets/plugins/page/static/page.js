// Takes the theme that the user has chosen in Airflow; without it the system's colours hold.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // A frame without access to Airflow's storage keeps the system's colours.
}

// Airflow shows a page in a frame, which must not leave it: Airflow's own pages open around it.
addEventListener("click", (event) => {
  const link = event.target.closest("a.airflow");
  if (link === null || window.top === window || event.button !== 0) return;
  try {
    const outer = window.top.document.createElement("a");
    outer.href = link.href;
    window.top.document.body.append(outer);
    event.preventDefault();
    outer.click();
    outer.remove();
  } catch {
    // A frame without access to the page around it opens the link itself.
  }
});
