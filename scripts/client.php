<?php
// Writes a PHP class for each schema with properties, with the getters that PHP generators make of them.
// PHP does not tell letters by case in names of classes and methods, so it refuses two that fold to one.
$document = json_decode(file_get_contents($argv[1]), true, 512, JSON_THROW_ON_ERROR);
$camel = fn (string $name): string => str_replace(' ', '', ucwords(preg_replace('/[^A-Za-z0-9]+/', ' ', $name)));
echo "<?php\nnamespace Makola;\n";
foreach ($document['components']['schemas'] as $name => $schema) {
    if (!isset($schema['properties'])) {
        continue;
    }
    echo 'final class ', $camel($name), "\n{\n    public function __construct(private array \$values) {}\n";
    foreach (array_keys($schema['properties']) as $property) {
        echo '    public function get', $camel($property), "(): mixed { return \$this->values['$property'] ?? null; }\n";
    }
    echo "}\n";
}
