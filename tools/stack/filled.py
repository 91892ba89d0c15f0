"""A template with its parameters, mappings and conditions resolved, as CloudFormation would for one deploy.

References to resources stay as they are: nothing is deployed here.
"""

NOTHING = {"Ref": "AWS::NoValue"}


def resources(template, parameters):
    """The resources that a deploy with these parameters has, by name, with everything known filled in."""
    filler = _Filler(template, parameters)
    wanted = {
        name: resource
        for name, resource in template["Resources"].items()
        if "Condition" not in resource or filler.condition(resource["Condition"])
    }
    return {name: filler.fill(resource) for name, resource in wanted.items()}


class _Filler:
    def __init__(self, template, parameters):
        defaults = {name: declared.get("Default") for name, declared in template["Parameters"].items()}
        self.parameters = {**defaults, **parameters}
        self.mappings = template.get("Mappings", {})
        self.conditions = template.get("Conditions", {})

    def condition(self, name):
        """Whether a condition holds."""
        return self._holds(self.conditions[name])

    def fill(self, node):
        """`node` with what is known in place of what refers to it."""
        if isinstance(node, list):
            return [part for part in map(self.fill, node) if part != NOTHING]
        if not isinstance(node, dict):
            return node
        if set(node) == {"Ref"} and node["Ref"] in self.parameters:
            return self.parameters[node["Ref"]]
        if set(node) == {"Fn::FindInMap"}:
            mapping, first, second = self.fill(node["Fn::FindInMap"])
            return self.mappings[mapping][first][second]
        if set(node) == {"Fn::If"}:
            name, yes, no = node["Fn::If"]
            return self.fill(yes if self.condition(name) else no)
        filled = {name: self.fill(part) for name, part in node.items()}
        return {name: part for name, part in filled.items() if part != NOTHING}

    def _holds(self, test):
        ((kind, parts),) = test.items()
        match kind:
            case "Condition":
                return self.condition(parts)
            case "Fn::Equals":
                first, second = map(str, map(self.fill, parts))
                return first == second
            case "Fn::Not":
                return not self._holds(parts[0])
            case "Fn::And":
                return all(map(self._holds, parts))
            case "Fn::Or":
                return any(map(self._holds, parts))
        raise ValueError(f"a condition of a kind that the template did not use so far: {kind}")
