import PrismBase
import PrismProtocol

/// One entry of `keys` as it was written.
package struct KeyFileDraft: Sendable {
  var id: String?
  var file: String?

  private typealias Key = ConfigurationKey<KeyFileDraft>

  static let keys = KeyTable(
    [
      Key("id", .keyID, optional: \.id, isRequired: true, "the name of the key in packets"),
      Key(
        "file", .keyFile, optional: \.file, isRequired: true,
        "a file of 32 or 64 hexadecimal digits, not readable by others; a relative path is looked up in `$CREDENTIALS_DIRECTORY`, then beside prismd.yaml"
      ),
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
  /// The list of keys, with what their files hold. Neither digits nor the file's text ever get into a fault.
  static var keyFiles: Self {
    let allowed = "a list of keys like {id: k1, file: k1.key}"
    let entry = ValueForm<KeyFileDraft>.object(KeyFileDraft.keys, "a map like {id: k1, file: k1.key}")
    return ValueForm(allowed: allowed, schema: ["type": ["array", "null"], "items": entry.schema]) {
      node, key, checker in
      if node.isNull { return [] }
      guard case .sequence(let nodes) = node.value else {
        checker.keyRing.isComplete = false
        checker.refuse(node, key, mustBe: allowed)
        return nil
      }
      var keys: [DaemonConfiguration.Key] = []
      for (index, node) in nodes.enumerated() {
        let place = "\(key)[\(index)]"
        guard let draft = entry.read(node, place, &checker), let id = draft.id, let file = draft.file else {
          checker.keyRing.isComplete = false
          continue
        }
        if keys.contains(where: { $0.id == id }) {
          checker.fault(node.line, "\(place).id", "is \(id), which an earlier key has already")
        } else if let key = checker.key(id: id, file: file, line: node.line, place: place) {
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
  mutating func key(id: String, file: String, line: Int, place: String) -> DaemonConfiguration.Key? {
    let found = search.read(file, bytesMax: 4096)
    filesRead.append(found.path)
    do throws(FileFault) {
      let (bytes, mode) = try found.result.get()
      let secret = try KeyFile.secret(bytes, mode: mode)
      return DaemonConfiguration.Key(id: id, file: found.path, secret: secret)
    } catch {
      let places = file.hasPrefix("/") || !error.isMissing ? "" : " (looked for in \(search.places))"
      fault(line, "\(place).file", "names \(file.shownAsPath)\(places): \(error.reason)")
      keyRing.brokenIDs.insert(id)
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

enum KeyFile {
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
