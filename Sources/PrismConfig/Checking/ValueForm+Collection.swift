import PrismProtocol

extension ValueForm {
  /// - Parameter atLeast: fewer elements are a fault.
  /// - Parameter most: more elements are one, too; with the word for them.
  /// - Parameter named: a second element with a name is one, too; with the words about it.
  static func list<Element>(
    of form: ValueForm<Element>, _ allowed: String, atLeast: Int = 0, atMost most: (count: Int, noun: String)? = nil,
    named: (name: @Sendable (Element) -> String, rule: String)? = nil
  ) -> Self where Value == [Element] {
    let schema: [JSONValue.Member] = [
      .init("type", "array"), .init("items", form.schema), .init("minItems", .int(atLeast)),
    ]
    let maximum = most.map { [JSONValue.Member("maxItems", .int($0.count))] } ?? []
    return ValueForm(allowed: allowed, schema: .object(schema + maximum)) { node, key, checker in
      guard case .sequence(let nodes) = node.value, nodes.count >= atLeast else {
        checker.refuse(node.isEmptyList ? YAMLNode(line: node.line, .null) : node, key, mustBe: allowed)
        return nil
      }
      let faultsBefore = checker.faults.count
      var names: Set<String> = []
      let elements = nodes.enumerated().compactMap { index, node in
        let element = form.read(node, "\(key)[\(index)]", &checker)
        if let named, let name = element.map(named.name), !names.insert(name).inserted {
          checker.fault(node.line, "\(key)[\(index)].name", "is \(name), which \(named.rule)")
        }
        return element
      }
      if checker.faults.count == faultsBefore, let most, nodes.count > most.count {
        checker.fault(node.line, key, "has \(nodes.count) \(most.noun), must be \(allowed)")
      }
      return checker.faults.count == faultsBefore ? elements : nil
    } show: { elements in
      .array(elements.map(form.show))
    }
  }

  /// The same list, in which each entry is looked at beside the others.
  /// - Parameter faults: of the entry with this index: its members, and why they are refused.
  func checked<Element>(
    _ faults: @escaping @Sendable (_ entries: [Element], _ index: Int) -> [(member: String, message: String)]
  ) -> Self where Value == [Element] {
    let read = read
    return ValueForm(allowed: allowed, schema: schema) { node, key, checker in
      guard let entries = read(node, key, &checker), case .sequence(let nodes) = node.value else { return nil }
      let faultsBefore = checker.faults.count
      for index in entries.indices {
        for fault in faults(entries, index) {
          checker.fault(nodes[index].line, "\(key)[\(index)].\(fault.member)", fault.message)
        }
      }
      return checker.faults.count == faultsBefore ? entries : nil
    } show: { [show] entries in
      show(entries)
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

  /// A map with keys of the operator's own, whose order is of no account.
  static func dictionary<Element>(
    of form: ValueForm<Element>, _ allowed: String, names: String, isName: @escaping @Sendable (String) -> Bool
  ) -> Self where Value == [String: Element] {
    ValueForm<[MapEntry<Element>]>.map(to: form, allowed, names: names, isName: isName)
      .converted(
        { Dictionary($0.map { ($0.name, $0.value) }) { $1 } },
        back: { $0.sorted { $0.key < $1.key }.map { MapEntry(name: $0.key, value: $0.value) } })
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
