import PrismBase
import PrismProtocol

/// One entry of `keys` as it was written; a collector's has more members.
struct KeyFileDraft: Sendable {
  var id = ""
  var file = ""
  var derive: String?
  var namespaces: [String] = []

  private typealias Key = ConfigurationKey<KeyFileDraft>

  private static let id = Key("id", .keyID, required: \.id, "the name of the key in packets")
  private static func file(_ meaning: String) -> Key { Key("file", .keyFile, required: \.file, meaning) }

  static let keys = KeyTable(
    [
      id,
      file(
        "a file of 32 or 64 hexadecimal digits, not readable by others; a relative path is looked up in `$CREDENTIALS_DIRECTORY`, then beside prismd.yaml"
      ),
    ], defaults: KeyFileDraft())

  static let collectorKeys = KeyTable(
    [
      id, file("a file of 32 or 64 hexadecimal digits, not readable by others"),
      Key(
        "derive", .string("device; leave the key out for one key of all devices") { $0 == "device" },
        optional: \.derive, "`device`: the file holds a master, from which each device's own key is made"),
      Key(
        "namespaces", .list(of: .namespaceName, "a list of namespaces", atLeast: 1), at: \.namespaces, default: "all",
        "the namespaces that are taken under the key"),
    ], defaults: KeyFileDraft())
}

extension ValueForm where Value == String {
  /// Digits of a key in place of its path are not shown.
  static var keyFile: Self {
    string(
      "the path of a key file", isShown: { _ in false },
      isSound: { $0.isPrintable(bytesMax: 4095) && !$0.isKeyMaterial })
  }
}

extension ValueForm where Value == [DaemonConfiguration.Key] {
  static var keyFiles: Self { keys(KeyFileDraft.keys, like: "{id: main, file: main.key}", atLeast: 0) }
  static var collectorKeys: Self {
    keys(KeyFileDraft.collectorKeys, like: "{id: main, file: keys/main.key}", atLeast: 1)
  }

  /// The list of keys, with what their files hold. Neither digits nor the file's text ever get into a fault.
  private static func keys(_ table: KeyTable<KeyFileDraft>, like example: String, atLeast: Int) -> Self {
    let allowed = "a list of keys like \(example)"
    let entry = ValueForm<KeyFileDraft>.object(table, "a map like \(example)")
    let schema: [JSONValue.Member] = [
      .init("type", atLeast == 0 ? ["array", "null"] : "array"), .init("items", entry.schema),
    ]
    return ValueForm(
      allowed: allowed, schema: .object(schema + (atLeast == 0 ? [] : [.init("minItems", .int(atLeast))]))
    ) { node, key, checker in
      if node.isNull, atLeast == 0 { return [] }
      guard case .sequence(let nodes) = node.value, nodes.count >= atLeast else {
        checker.keyRing.isComplete = false
        checker.refuse(node, key, mustBe: allowed)
        return nil
      }
      var keys: Value = []
      for (index, node) in nodes.enumerated() {
        let place = "\(key)[\(index)]"
        guard let draft = entry.read(node, place, &checker) else {
          checker.keyRing.isComplete = false
          continue
        }
        if keys.contains(where: { $0.id == draft.id }) {
          checker.fault(node.line, "\(place).id", "is \(draft.id), which an earlier key has already")
        } else if let key = checker.key(draft, line: node.line, place: place) {
          keys.append(key)
        }
      }
      return keys
    } show: { keys in
      .array(keys.map { ["id": .string($0.id), "file": .string($0.file)] })
    }
  }
}

extension Checker {
  /// Reads a key's file. nil after a fault was reported.
  fileprivate mutating func key(_ draft: KeyFileDraft, line: Int, place: String) -> DaemonConfiguration.Key? {
    let found = search.read(draft.file, bytesMax: 4096)
    filesRead.append(found.path)
    do throws(FileFault) {
      let (bytes, mode) = try found.result.get()
      let secret = try KeyFile.secret(bytes, mode: mode)
      return DaemonConfiguration.Key(
        id: draft.id, file: found.path, secret: secret, derivesForDevice: draft.derive != nil,
        namespaces: draft.namespaces.isEmpty ? nil : Set(draft.namespaces))
    } catch {
      let places = draft.file.hasPrefix("/") || !error.isMissing ? "" : " (looked for in \(search.places))"
      fault(line, "\(place).file", "names \(draft.file.shownAsPath)\(places): \(error.reason)")
      keyRing.brokenIDs.insert(draft.id)
      return nil
    }
  }
}

extension String {
  /// A word without a dot or a slash may be a key that was put where its file belongs.
  fileprivate var shownAsPath: String {
    utf8.count < 16 || contains { $0 == "." || $0 == "/" } ? shownInFault : "a file"
  }
}

private enum KeyFile {
  /// 32 or 64 hexadecimal digits and white space after them.
  static func secret(_ bytes: [UInt8], mode: UInt32) throws(FileFault) -> Secret {
    guard mode & 0o004 == 0 else {
      throw FileFault("is readable by others; chmod 600 it, and make a new key if others were on this machine")
    }
    var digits = bytes[...]
    while let last = digits.last,
      [UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: " "), UInt8(ascii: "\t")].contains(last)
    { digits = digits.dropLast() }
    guard digits.count == 32 || digits.count == 64, var secret = Hex.decode(digits) else {
      throw FileFault("must hold 32 or 64 hexadecimal digits and nothing else; prismctl keys new makes such a file")
    }
    return Secret(taking: &secret)
  }
}
