/// The style sheet and the script of the status page.
public enum StatusFiles {
  /// The figures are renewed in place, while the page is looked at.
  public static let script = """
    "use strict";
    async function renew() {
      if (document.hidden) return;
      try {
        const answer = await fetch("/", { cache: "no-store" });
        const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
        if (answer.ok && next) document.querySelector("main").replaceWith(next);
      } catch {
        const light = document.querySelector(".light");
        light.className = "light held";
        light.textContent = "The daemon does not answer. These figures are old.";
      }
    }
    setInterval(renew, 2000);

    """

  public static let style = """
    :root { color-scheme: light dark; --ink: #1b1f27; --soft: #565e6c; --line: #d5d9e0; --paper: #fff;
      --good: #1b6e3c; --good-paper: #e4f3ea; --warn: #8a5200; --warn-paper: #fdf1dd; --bad: #b3261e; --bad-paper: #fdeceb; }
    @media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #a3acba; --line: #3a414d; --paper: #14171c;
      --good: #7bd69a; --good-paper: #163524; --warn: #f0b766; --warn-paper: #3a2b12; --bad: #ff9a92; --bad-paper: #43201e; } }
    body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
    main { max-width: 70rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
    h1 { font-size: 1.25rem; } h2 { font-size: 1rem; }
    .light { padding: .8rem 1rem; border-radius: 6px; font-weight: 600; border-left: 8px solid; }
    .sending { color: var(--good); background: var(--good-paper); }
    .waiting { color: var(--warn); background: var(--warn-paper); }
    .held { color: var(--bad); background: var(--bad-paper); }
    .flow { display: flex; flex-wrap: wrap; gap: .5rem; padding: 0; list-style-type: ""; }
    .flow li { flex: 1 1 7rem; border: 1px solid var(--line); border-radius: 6px; padding: .5rem .8rem; color: var(--soft); }
    .flow b { display: block; font-size: 1.3rem; color: var(--ink); font-variant-numeric: tabular-nums; }
    .scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
    th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
    th, td.number { white-space: nowrap; } td:last-child { min-width: 16rem; }
    td.number { text-align: right; font-variant-numeric: tabular-nums; } .quiet { color: var(--soft); }
    .fault b { color: var(--bad); } .warning b { color: var(--warn); } .ok b { color: var(--good); }
    a { color: inherit; } :focus-visible { outline: 2px solid; }

    """
}
