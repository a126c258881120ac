// Takes the theme that the user has chosen in Airflow; without it the system's colours hold.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // A frame without access to Airflow's storage keeps the system's colours.
}
