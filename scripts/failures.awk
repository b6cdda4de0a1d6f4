# Prints what failed in the output of go test, in at most 18 lines: test, file and line of each failure, both places of a data
# race, the place of a panic. Whoever sees only the end of a log finds the failures there. root is the folder of the module.

function place(line) { # of a stack, where it is in this module
	sub(/^[ \t]+/, "", line)
	sub(/ \+0x.*/, "", line)
	if (index(line, root "/") != 1) return ""
	return substr(line, length(root) + 2)
}

function say(text) { if (!(text in said)) { said[text] = 1; lines[++count] = substr(text, 1, 240) } }

function forget() { delete names; delete first; delete last; tests = 0; current = "" }

# flush prints the tests of a package: the first and the last line of each, or its name alone where it has no line.
function flush(package,  i, j, name, parent) {
	sub(/^github.com\/makola\/makola\/?/, "", package)
	for (i = 1; i <= tests; i++) {
		name = names[i]
		if (name in first) {
			say(package " " name " " first[name])
			if (last[name] != first[name]) say(package " " name " " last[name])
			continue
		}
		parent = 0
		for (j = 1; j <= tests; j++) if (index(names[j], name "/") == 1) parent = 1
		if (!parent && !broke) say(package " " name)
	}
	forget()
	broke = 0
}

/^WARNING: DATA RACE/ { race = 1; one = other = ""; next }
race && / at 0x.* by / { looking = 1; next }
race && looking && place($0) != "" { if (one == "") one = place($0); else other = place($0); looking = 0; next }
race && /^Goroutine / { say("data race: " one " and " other); race = looking = 0 }

/^(panic|fatal error): / { broken = $0; broke = 1; next }
broken != "" && /^\t\tTest/ { broken = broken " " $1; next }
broken != "" && /^\t/ && place($0) != "" { say(place($0) ": " broken); broken = "" }

/^(vet: )?[^ \t]+\.go:[0-9]+:[0-9]+: / { say($0); next }

/^ *--- FAIL: / { current = names[++tests] = $3; next }
/^ *--- / { current = ""; next }
current != "" && /^ +[A-Za-z0-9_]+\.go:[0-9]+: / && !/ was ready after |: the end of what |: time=[^ ]+ level=/ {
	text = $0
	sub(/^ +/, "", text)
	if (!(current in first)) first[current] = text
	last[current] = text
}

/^ok / { forget() }
/^FAIL\t/ {
	if (broken != "") say(broken)
	broken = ""
	flush($2)
	if ($3 == "[setup") say($0)
}

END {
	for (i = 1; i <= count && i <= 18; i++) print lines[i]
	if (count > 18) print "and " count - 18 " more, above"
}
