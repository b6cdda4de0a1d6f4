// The console's own script: keyboard shortcuts, copy buttons, menus and polling. Every page works without it.
"use strict";
(() => {
	document.documentElement.classList.add("script");

	// Live parts do not poll in a hidden tab. A line tells when the server does not respond.
	const lost = (is) => {
		const line = document.getElementById("lost");
		if (line) line.hidden = !is;
	};
	document.addEventListener("htmx:before:request", (e) => {
		if (document.hidden) e.preventDefault();
	});
	document.addEventListener("htmx:error", () => lost(true));
	document.addEventListener("htmx:after:request", (e) => {
		const status = e.detail.ctx.response.status;
		lost(status >= 500);
		if (status === 401 || status === 403) location.reload();
	});

	document.addEventListener("click", (e) => {
		const button = e.target.closest("[data-copy]");
		if (button && navigator.clipboard) {
			navigator.clipboard.writeText(button.dataset.copy).then(() => {
				const was = button.textContent;
				button.textContent = "Copied";
				setTimeout(() => { button.textContent = was; }, 1500);
			}, () => {});
		}
		if (e.target.closest("[data-keys]")) keys();
		if (e.target.closest("[data-print]")) window.print();
		if (e.target.closest("[data-close]")) e.target.closest("dialog").close();
	});
	document.addEventListener("change", (e) => {
		if (e.target.matches("[data-submit]")) e.target.form.requestSubmit();
		if (e.target.id === "keys-on") localStorage.setItem("keys", e.target.checked ? "on" : "off");
	});

	// A printed page has the numbers of its charts.
	window.addEventListener("beforeprint", () => {
		for (const numbers of document.querySelectorAll(".chart .numbers")) numbers.open = true;
	});

	// A menu closes at a click elsewhere, and by Escape.
	document.addEventListener("click", (e) => {
		for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(e.target)) menu.open = false;
	});
	document.addEventListener("keydown", (e) => {
		const menu = e.key === "Escape" && document.querySelector("details.menu[open]");
		if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
	});

	// Keyboard shortcuts. They are off while a field has the focus, and where they were switched off.
	const keysOn = () => localStorage.getItem("keys") !== "off";
	const keys = () => {
		const dialog = document.getElementById("keys");
		if (!dialog || dialog.open) return;
		document.getElementById("keys-on").checked = keysOn();
		dialog.showModal();
	};
	let row = -1, go = false;
	const move = (step) => {
		const rows = document.querySelectorAll("main tbody tr");
		if (!rows.length) return;
		if (row >= 0 && rows[row]) rows[row].classList.remove("at");
		row = Math.min(Math.max(row + step, 0), rows.length - 1);
		rows[row].classList.add("at");
		rows[row].scrollIntoView({block: "nearest"});
	};
	const act = {
		"/": () => document.getElementById("search")?.focus(),
		"?": keys,
		"j": () => move(1),
		"k": () => move(-1),
		"e": () => document.querySelector("a[data-export]")?.click(),
		"Enter": () => document.querySelector("main tbody tr.at a")?.click(),
	};
	document.addEventListener("keydown", (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey || !keysOn() || e.target.closest("input, select, textarea, dialog")) return;
		if (e.key === "Enter" && e.target !== document.body) return;
		if (go) {
			go = false;
			const link = document.querySelector(`[data-go="${CSS.escape(e.key)}"]`);
			if (link) { e.preventDefault(); link.click(); }
			return;
		}
		if (e.key === "g") { go = true; setTimeout(() => { go = false; }, 1500); return; }
		if (act[e.key]) { e.preventDefault(); act[e.key](); }
	});
})();
