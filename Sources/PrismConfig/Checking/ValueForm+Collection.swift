import PrismProtocol

extension ValueForm {
  /// - Parameter atLeast: fewer elements are a fault.
  static func list<Element>(
    of form: ValueForm<Element>, _ allowed: String, atLeast: Int = 0
  ) -> Self where Value == [Element] {
    let schema: JSONValue = ["type": "array", "items": form.schema, "minItems": .int(atLeast)]
    return ValueForm(allowed: allowed, schema: schema) { node, key, checker in
      guard case .sequence(let nodes) = node.value, nodes.count >= atLeast else {
        checker.refuse(node.isEmptyList ? YAMLNode(line: node.line, .null) : node, key, mustBe: allowed)
        return nil
      }
      let faultsBefore = checker.faults.count
      let elements = nodes.enumerated().compactMap { form.read($1, "\(key)[\($0)]", &checker) }
      return checker.faults.count == faultsBefore ? elements : nil
    } show: { elements in
      .array(elements.map(form.show))
    }
  }

  /// A list of which only the set of its elements counts.
  static func set<Element>(
    of form: ValueForm<Element>, _ allowed: String, atLeast: Int = 1
  ) -> Self where Value == Set<Element>, Element: Comparable {
    ValueForm<[Element]>.list(of: form, allowed, atLeast: atLeast).converted({ Set($0) }, back: { $0.sorted() })
  }

  /// A map with the keys of `table`. Values that it does not have are not shown.
  static func object(_ table: KeyTable<Value>, _ allowed: String) -> Self {
    ValueForm(allowed: allowed, schema: Schema.object(table)) { node, key, checker in
      guard case .mapping = node.value else {
        checker.refuse(node, key, mustBe: allowed)
        return nil
      }
      let place = checker.place
      checker.place += key + "."
      defer { checker.place = place }
      var value = table.defaults
      let faultsBefore = checker.faults.count
      _ = table.read(node, into: &value, &checker)
      return checker.faults.count == faultsBefore ? value : nil
    } show: { value in
      .object(table.keys.map { .init($0.name, $0.show(value)) }.filter { $0.value != .null && $0.value != .array([]) })
    }
  }

  /// A map with keys of the operator's own, in the order of the file.
  static func map<Element>(
    to form: ValueForm<Element>, _ allowed: String, names: String, isName: @escaping @Sendable (String) -> Bool
  ) -> Self where Value == [MapEntry<Element>] {
    let schema: JSONValue = ["type": ["object", "null"], "additionalProperties": form.schema]
    return ValueForm(allowed: allowed, schema: schema) { node, key, checker in
      guard let entries = checker.entries(node, key, mustBe: allowed) else { return nil }
      return entries.compactMap { entry in
        let name = "\(key).\(entry.key.shownInFault)"
        guard isName(entry.key) else {
          checker.fault(entry.line, name, "is no name of an entry, must be \(names)")
          return nil
        }
        return form.read(entry.node, name, &checker).map { MapEntry(name: entry.key, value: $0) }
      }
    } show: { entries in
      .object(entries.map { JSONValue.Member($0.name, form.show($0.value)) })
    }
  }
}

struct MapEntry<Value: Sendable>: Sendable {
  let name: String
  let value: Value
}

extension MapEntry: Equatable where Value: Equatable {}

extension YAMLNode {
  fileprivate var isEmptyList: Bool { value == .sequence([]) }
}

extension YAMLNode.Value {
  fileprivate static var null: Self { .scalar(YAMLScalar(text: "", isPlain: true)) }
}
