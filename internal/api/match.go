package api

import (
	"slices"
	"strings"
)

func (a *API) add(r Route) {
	e := a.static[r.Path]
	if i := slices.IndexFunc(a.patterns, func(e *endpoint) bool { return e.path == r.Path }); i >= 0 {
		e = a.patterns[i]
	}
	if e == nil {
		e = &endpoint{path: r.Path, segments: strings.Split(r.Path, "/")}
		if strings.Contains(r.Path, "{") {
			a.patterns = append(a.patterns, e)
		} else {
			a.static[r.Path] = e
		}
	}
	e.routes = append(e.routes, &r)
	a.routes = append(a.routes, &r)
}

// find returns the endpoint of an escaped path. params are the values of its parameters, still escaped.
func (a *API) find(path string) (e *endpoint, params []string) {
	if e := a.static[path]; e != nil {
		return e, nil
	}
	segments := strings.Split(path, "/")
next:
	for _, e := range a.patterns {
		if len(e.segments) != len(segments) {
			continue
		}
		params = params[:0]
		for i, want := range e.segments {
			switch {
			case want[:1] == "{" && segments[i] != "":
				params = append(params, segments[i])
			case want != segments[i]:
				continue next
			}
		}
		return e, params
	}
	return nil, nil
}

// lacksID reports whether a path with a slash at its end may be that of a single thing whose id is empty. Such a request must not be answered
// with the list.
func (a *API) lacksID(method, path string) bool {
	return slices.ContainsFunc(a.patterns, func(e *endpoint) bool {
		rest, ok := strings.CutPrefix(e.path, path+"/{")
		return ok && strings.Index(rest, "}") == len(rest)-1 && e.method(method) != nil
	})
}

// method returns the route of a method, or nil.
func (e *endpoint) method(method string) *Route {
	for _, r := range e.routes {
		if r.Method == method {
			return r
		}
	}
	return nil
}

// allow returns the methods of the endpoint for the Allow header.
func (e *endpoint) allow() string {
	var methods []string
	for _, r := range e.routes {
		methods = append(methods, r.Method)
	}
	return strings.Join(methods, ", ")
}
