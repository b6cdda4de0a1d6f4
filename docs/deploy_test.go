package docs_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// The files of deploy/compose.yaml and deploy/kubernetes are held to the schemas of their programs, and to each other.

const deploy = root + "/deploy/"

// object is a member of a YAML document.
type object = map[string]any

// manifests reads the documents of a YAML file.
func manifests(t *testing.T, path string) (all []object) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	reader := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var one object
		err := reader.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, one)
	}
}

// schema compiles a schema of testdata, or one of its definitions.
func schema(t *testing.T, file, definition string) *jsonschema.Schema {
	t.Helper()
	text, err := os.Open("testdata/schemas/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = text.Close() }()
	content, err := jsonschema.UnmarshalJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("file:///"+file, content); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("file:///" + file + definition)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// at returns the member of a document at a path. A path has no indexes: in a list, at follows the first element.
func at(t *testing.T, in any, path ...string) any {
	t.Helper()
	for _, name := range path {
		if list, is := in.([]any); is && len(list) > 0 {
			in = list[0]
		}
		members, _ := in.(object)
		if in = members[name]; in == nil {
			t.Fatalf("there is no %s of %v", name, path)
		}
	}
	return in
}

// compose.yaml is a valid compose file. A service with an unknown field is not valid.
func TestCompose_fitsItsSchema(t *testing.T) {
	s, file := schema(t, "compose-spec.json", ""), manifests(t, deploy+"compose.yaml")[0]
	if err := s.Validate(file); err != nil {
		t.Error(err)
	}
	at(t, file, "services", "one").(object)["restarts"] = "always"
	if s.Validate(file) == nil {
		t.Error("a misspelt field is valid")
	}
}

// Two nodes have their own names and data folders. haproxy knows their names, and they trust the network of the file.
func TestCompose_partsFit(t *testing.T) {
	file := manifests(t, deploy+"compose.yaml")[0]
	services := at(t, file, "services").(object)
	before := at(t, services["haproxy"], "environment").(object)
	if before["NODE_ONE"] != "one:8080" || before["NODE_TWO"] != "two:8080" {
		t.Errorf("haproxy sends requests to %v", before)
	}
	network := at(t, at(t, file, "networks", "default", "ipam", "config"), "subnet")
	for _, node := range []string{"one", "two"} {
		settings := at(t, services[node], "environment").(object)
		if settings["MAKOLA_NODE"] != node || settings["MAKOLA_TRUSTED_PROXIES"] != network || settings["MAKOLA_ENV"] != "production" {
			t.Errorf("%s has the settings %v", node, settings)
		}
		if volume := at(t, services[node], "volumes").([]any)[0]; volume != node+":/var/lib/makola" {
			t.Errorf("%s keeps its data in %s", node, volume)
		}
	}
	text, err := os.ReadFile(deploy + "haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	for name := range before {
		if !strings.Contains(string(text), `"${`+name+`}"`) {
			t.Errorf("haproxy.cfg has no %s", name)
		}
	}
}

// kustomization is the part of kustomize's file that deploy/kubernetes uses. Any other field is refused.
type kustomization struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Namespace  string
	Labels     []struct{ Pairs map[string]string }
	Resources  []string
	Images     []struct {
		Name    string
		NewName string `yaml:"newName"`
		NewTag  string `yaml:"newTag"`
	}
	ConfigMaps []struct {
		Name     string
		Literals []string
	} `yaml:"configMapGenerator"`
	Secrets []struct {
		Name  string
		Files []string
		Envs  []string
	} `yaml:"secretGenerator"`
}

func kustomized(t *testing.T) (k kustomization, all []object) {
	t.Helper()
	text, err := os.ReadFile(deploy + "kubernetes/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(&k); err != nil {
		t.Fatal(err)
	}
	for _, file := range k.Resources {
		all = append(all, manifests(t, deploy+"kubernetes/"+file)...)
	}
	return k, all
}

// Every resource is valid for its kind. A resource with an unknown field is not valid.
func TestKubernetes_fitsItsSchemas(t *testing.T) {
	k, all := kustomized(t)
	files, err := filepath.Glob(deploy + "kubernetes/*.yaml")
	if err != nil || len(files) != len(k.Resources)+1 {
		t.Errorf("%d files, and %d are resources: %v", len(files), len(k.Resources), err)
	}
	kinds := map[string]int{}
	for _, resource := range all {
		kind := at(t, resource, "kind").(string)
		kinds[kind]++
		s := schema(t, "kubernetes-1.36.json", "#/$defs/"+strings.NewReplacer("/", "~1", " ", "%20").Replace(at(t, resource, "apiVersion").(string)+" "+kind))
		if err := s.Validate(resource); err != nil {
			t.Error(err)
		}
		resource["metadata"].(object)["label"] = "misspelt"
		if s.Validate(resource) == nil {
			t.Errorf("%s: a misspelt field is valid", kind)
		}
	}
	for _, kind := range []string{"StatefulSet", "Service", "PodDisruptionBudget", "NetworkPolicy", "Job"} {
		if kinds[kind] == 0 {
			t.Errorf("there is no %s", kind)
		}
	}
}

// Selectors select existing pods. Settings and secrets are those that kustomize makes. Probes request paths of the server.
func TestKubernetes_partsFit(t *testing.T) {
	k, all := kustomized(t)
	pods := map[string]any{} // by component
	var selectors []any
	for _, resource := range all {
		switch resource["kind"] {
		case "StatefulSet", "Job":
			pods[at(t, resource, "spec", "template", "metadata", "labels", "app.kubernetes.io/component").(string)] = at(t, resource, "spec", "template", "spec")
		case "Service":
			selectors = append(selectors, at(t, resource, "spec", "selector"))
		case "PodDisruptionBudget":
			selectors = append(selectors, at(t, resource, "spec", "selector", "matchLabels"))
		case "NetworkPolicy":
			selectors = append(selectors, at(t, resource, "spec", "podSelector", "matchLabels"))
		}
	}
	for _, s := range selectors {
		if component, _ := at(t, s, "app.kubernetes.io/component").(string); pods[component] == nil {
			t.Errorf("no pod is chosen by %v", s)
		}
	}
	for component, pod := range pods {
		container := at(t, pod, "containers").([]any)[0].(object)
		if container["image"] != k.Images[0].Name {
			t.Errorf("%s runs the image %s", component, container["image"])
		}
		from := container["envFrom"].([]any)
		if at(t, from[0], "configMapRef", "name") != k.ConfigMaps[0].Name || at(t, from[1], "secretRef", "name") != k.Secrets[1].Name {
			t.Errorf("%s has the settings of %v", component, from)
		}
	}
	node := at(t, pods["node"], "containers").([]any)[0].(object)
	for probe, path := range map[string]string{"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"} {
		if got := at(t, node, probe, "httpGet", "path"); got != path {
			t.Errorf("%s asks %s", probe, got)
		}
	}
	keys := slices.IndexFunc(at(t, pods["node"], "volumes").([]any), func(v any) bool { return v.(object)["name"] == "keys" })
	if keys < 0 || at(t, at(t, pods["node"], "volumes").([]any)[keys], "secret", "secretName") != k.Secrets[0].Name {
		t.Errorf("the master key is not of the secret %s", k.Secrets[0].Name)
	}
}
