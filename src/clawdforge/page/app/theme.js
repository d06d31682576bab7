// Sets light or dark before anything is painted. A plain script, since modules run too late for that.
(function () {
  const asked = matchMedia("(prefers-color-scheme: dark)");
  function apply() {
    let chosen = null;
    try {
      chosen = localStorage.getItem("clawdforge.theme");
    } catch {
      // storage may be forbidden; the system's choice is good enough
    }
    const theme = chosen === "dark" || chosen === "light" ? chosen : asked.matches ? "dark" : "light";
    document.documentElement.dataset.theme = theme;
  }
  asked.addEventListener("change", apply);
  addEventListener("storage", apply);
  addEventListener("clawdforge-theme", apply);
  apply();
})();
