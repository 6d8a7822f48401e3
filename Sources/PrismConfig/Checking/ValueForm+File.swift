import PrismBase
import PrismProtocol

extension ValueForm where Value == String {
  /// A path from the root; a relative one counts from the folder of prismd.yaml.
  /// - Parameter bytesMax: 107 for a socket (`sockaddr_un`).
  static func path(bytesMax: Int = 4095) -> Self {
    let allowed = "a path of at most \(bytesMax) bytes"
    return judged(allowed) { text, node, key, checker in
      if text == "~" || text.hasPrefix("~/") {
        checker.fault(node.line, key, "is \(node.shown), but a ~ is an ordinary character; write ${HOME} for your home")
        return nil
      }
      let path = FilePath.joined(checker.search.folders.first ?? ".", text)
      if path.isPrintable(bytesMax: bytesMax) && !text.isEmpty { return path }
      checker.refuse(node, key, mustBe: allowed)
      return nil
    }
  }
}

// Files that are read with the configuration, and held until it is read again.
extension ValueForm where Value == HeldFile {
  static var certificates: Self {
    file("the path of a readable file with certificates in PEM", isShown: true) { (bytes, _) throws(FileFault) in
      try bytes.asPEM(.certificates)
    }
  }

  static var privateKey: Self {
    file("the path of a readable file with a private key in PEM", isShown: true) { (bytes, _) throws(FileFault) in
      try bytes.asPEM(.privateKey)
    }
  }

  /// A file with a bearer token. Faults don't show the value: it may be the token itself.
  static var tokenFile: Self { word("the path of a readable file with a token", isSecret: false) }

  /// A file with a secret of one line, not readable by others.
  static var secretWordFile: Self {
    word("the path of a file with one line of visible ASCII characters, not readable by others", isSecret: true)
  }

  private static func word(_ allowed: String, isSecret: Bool) -> Self {
    file(allowed, isShown: false, isSecret: isSecret) { (bytes, _) throws(FileFault) in
      var token = bytes[...]
      while let last = token.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: "\r") || last == UInt8(ascii: " ")
      { token = token.dropLast() }
      guard !token.isEmpty, token.allSatisfy({ (UInt8(ascii: "!")...UInt8(ascii: "~")).contains($0) }) else {
        throw FileFault("has no token in it; it holds one line of visible ASCII characters")
      }
      return Array(token)
    }
  }

  /// - Parameters:
  ///   - isShown: false keeps the path out of faults: it may be the secret itself.
  ///   - isSecret: a file that everyone may read is refused.
  ///   - content: what is held of the bytes.
  static func file(
    _ allowed: String, isShown: Bool, isSecret: Bool = false, bytesMax: Int = 1_048_576,
    content: @escaping @Sendable ([UInt8], Checker) throws(FileFault) -> [UInt8]
  ) -> Self {
    ValueForm(allowed: allowed, schema: ["type": "string"]) { node, key, checker in
      guard let text = checker.text(node, key, mustBe: allowed) else { return nil }
      do throws(FileFault) {
        return try checker.held(text, isSecret: isSecret, bytesMax: bytesMax, content)
      } catch {
        let name = isShown ? "is \(node.shown), which" : "names a file that"
        let places = text.hasPrefix("/") || !error.isMissing ? "" : " in \(checker.search.places)"
        let what = error.isContent ? "" : "cannot be read\(places): "
        checker.fault(node.line, key, "\(name) \(what)\(error.reason)")
        return nil
      }
    } show: {
      .string($0.path)
    }
  }
}

extension [UInt8] {
  func asPEM(_ content: PEM.Content) throws(FileFault) -> [UInt8] {
    if let fault = PEM.fault(in: self, as: content) { throw FileFault(fault) }
    return self
  }
}

extension Checker {
  /// Many namespaces may name one file: it is held once.
  fileprivate mutating func held(
    _ path: String, isSecret: Bool, bytesMax: Int, _ content: ([UInt8], Checker) throws(FileFault) -> [UInt8]
  ) throws(FileFault) -> HeldFile {
    let found = search.read(path, bytesMax: bytesMax)
    filesRead.append(found.path)
    let (bytes, mode) = try found.result.get()
    guard !isSecret || mode & 0o004 == 0 else { throw FileFault("others may read; run chmod 600 \(found.path)") }
    let sound = Secret(try content(bytes, self))
    if let known = heldFiles[found.path], known.content == sound { return known }
    let file = HeldFile(path: found.path, content: sound)
    heldFiles[found.path] = file
    return file
  }
}
