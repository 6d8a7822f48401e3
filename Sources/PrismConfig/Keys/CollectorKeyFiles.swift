import PrismProtocol

/// One entry of a collector's `keys` as it was written.
package struct CollectorKeyDraft: Sendable {
  var key = KeyFileDraft()
  var derive: String?
  var namespaces: [String] = []

  private typealias Key = ConfigurationKey<CollectorKeyDraft>

  static let keys = KeyTable(
    [
      Key("id", .keyID, optional: \.key.id, isRequired: true, "the name of the key in packets"),
      Key(
        "file", .keyFile, optional: \.key.file, isRequired: true,
        "a file of 32 or 64 hexadecimal digits, not readable by others"),
      Key(
        "derive", .string("device; leave the key out for one key of all devices") { $0 == "device" },
        optional: \.derive, "`device`: the file holds a master, from which each device's own key is made"),
      Key(
        "namespaces", .list(of: .namespaceName, "a list of namespaces", atLeast: 1), at: \.namespaces, default: "all",
        "the namespaces that are taken under the key"),
    ], defaults: CollectorKeyDraft())
}

extension ValueForm where Value == [CollectorConfiguration.Key] {
  /// The list of keys, with what their files hold. Neither digits nor the file's text ever get into a fault.
  static var collectorKeys: Self {
    let allowed = "a list of keys like {id: main, file: keys/main.key}"
    let entry = ValueForm<CollectorKeyDraft>.object(
      CollectorKeyDraft.keys, "a map like {id: main, file: keys/main.key}")
    return ValueForm(allowed: allowed, schema: ["type": "array", "items": entry.schema, "minItems": 1]) {
      node, key, checker in
      guard case .sequence(let nodes) = node.value, !nodes.isEmpty else {
        checker.refuse(node, key, mustBe: allowed)
        return nil
      }
      var keys: [CollectorConfiguration.Key] = []
      for (index, node) in nodes.enumerated() {
        let place = "\(key)[\(index)]"
        guard let draft = entry.read(node, place, &checker), let id = draft.key.id, let file = draft.key.file else {
          continue
        }
        if keys.contains(where: { $0.id == id }) {
          checker.fault(node.line, "\(place).id", "is \(id), which an earlier key has already")
        } else if let key = checker.key(id: id, file: file, line: node.line, place: place) {
          keys.append(
            .init(
              id: id, file: key.file, secret: key.secret, derivesForDevice: draft.derive != nil,
              namespaces: draft.namespaces.isEmpty ? nil : Set(draft.namespaces)))
        }
      }
      return keys
    } show: { keys in
      .array(keys.map { ["id": .string($0.id), "file": .string($0.file)] })
    }
  }
}
