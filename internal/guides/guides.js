// The guides work without this file. It adds buttons that copy samples, folds the list of pages on a small screen, and
// sends the requests of the reference's forms.
"use strict";

const menu = document.querySelector(".menu");
if (menu && window.matchMedia("(max-width: 56rem)").matches) menu.open = false;

for (const block of document.querySelectorAll("pre")) {
  block.tabIndex = 0;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  const text = block.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.append(button);
}

// The key stays in this tab. A key of real money is refused: a page is no place for it.
const keyField = document.querySelector("#key");
if (keyField) {
  keyField.value = sessionStorage.getItem("makola-key") || document.body.dataset.key || "";
  keyField.addEventListener("input", () => {
    const live = keyField.value.trim().startsWith("mk_live_");
    document.querySelector("#key-note").hidden = !live;
    if (live) {
      keyField.value = "";
      sessionStorage.removeItem("makola-key");
    } else {
      sessionStorage.setItem("makola-key", keyField.value.trim());
    }
  });
}

for (const form of document.querySelectorAll("form.call")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const out = form.querySelector("output");
    let path = form.dataset.path;
    const query = new URLSearchParams();
    for (const field of form.querySelectorAll("input[data-in]")) {
      const value = field.value.trim();
      if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(value));
      else if (value !== "") query.set(field.name, value);
    }
    if (query.size > 0) path += "?" + query;
    const body = form.querySelector("textarea");
    out.textContent = "Sending…";
    try {
      const answer = await fetch(path, {
        method: form.dataset.method,
        headers: { "x-api-key": keyField.value.trim(), ...(body ? { "content-type": "application/json" } : {}) },
        body: body ? body.value : undefined,
      });
      const text = await answer.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* shown as it is */ }
      out.textContent = `${answer.status} ${answer.statusText}\n\n${shown}`;
    } catch {
      out.textContent = "No response. The request may have arrived: get its status before you send it again.";
    }
  });
}
