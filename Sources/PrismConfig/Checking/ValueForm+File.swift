import PrismProtocol

extension ValueForm where Value == String {
  /// A path from the root; a relative one counts from the folder of prismd.yaml.
  /// - Parameter bytesMax: 107 for a socket (`sockaddr_un`).
  static func path(bytesMax: Int = 4095) -> Self {
    let allowed = "a path of at most \(bytesMax) bytes"
    return ValueForm(allowed: allowed, schema: ["type": "string"]) { node, key, checker in
      guard let text = checker.text(node, key, mustBe: allowed) else { return nil }
      let path = FilePath.joined(checker.search.folders.first ?? ".", text)
      if path.isPrintable(bytesMax: bytesMax) && !text.isEmpty { return path }
      checker.refuse(node, key, mustBe: allowed)
      return nil
    } show: {
      .string($0)
    }
  }

  /// A file that can be read now; its path from the root. What it holds is not looked at.
  static var readableFile: Self {
    file("the path of a readable file", isShown: true) { _ in nil }
  }

  /// A file with a bearer token. The value is not told in faults: it may be the token itself.
  static var tokenFile: Self {
    file("the path of a readable file with a token", isShown: false) { bytes in
      var token = bytes[...]
      while let last = token.last, last == 0x0A || last == 0x0D || last == 0x20 { token = token.dropLast() }
      let isToken = !token.isEmpty && token.allSatisfy { (0x21...0x7E).contains($0) }
      return isToken ? nil : "names a file without a token in it; it holds one line of visible ASCII characters"
    }
  }

  private static func file(
    _ allowed: String, isShown: Bool, objection: @escaping @Sendable ([UInt8]) -> String?
  ) -> Self {
    ValueForm(allowed: allowed, schema: ["type": "string"]) { node, key, checker in
      guard let text = checker.text(node, key, mustBe: allowed) else { return nil }
      let found = checker.search.read(text, bytesMax: 1_048_576)
      switch found.result {
      case .success(let file):
        if let objection = objection(file.bytes) {
          checker.fault(node.line, key, objection)
          return nil
        }
        checker.filesRead.append(found.path)
        return found.path
      case .failure(let fault):
        let name = isShown ? "is \(node.shown), which" : "names a file that"
        let places = text.hasPrefix("/") ? "" : " in \(checker.search.places)"
        checker.fault(node.line, key, "\(name) cannot be read\(places): \(fault.reason)")
        return nil
      }
    } show: {
      .string($0)
    }
  }
}
