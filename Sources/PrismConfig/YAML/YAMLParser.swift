import PrismBase

/// Bytes to a tree of values with their lines.
///
/// Accepts the parts of YAML 1.2 that a configuration needs, and refuses the others by name. These are anchors and
/// aliases (a few lines of them unfold to gigabytes), tags, merge keys, several documents and repeated keys. JSON is
/// read as YAML.
package struct YAMLParser {
  /// The largest file.
  package static let fileBytesMax = 1_048_576
  /// The largest scalar.
  package static let scalarBytesMax = 65_536
  /// The deepest nesting.
  package static let depthMax = 32
  /// The most nodes of one file.
  package static let nodesMax = 100_000

  private let events: YAMLEventStream
  private var faults: [YAMLFault] = []
  private var nodes = 0

  /// - Returns: the document, nil for an empty one or one that isn't YAML at all; and every fault that was found.
  package static func parse(_ bytes: [UInt8]) -> (root: YAMLNode?, faults: [YAMLFault]) {
    do throws(YAMLFault) {
      var parser = YAMLParser(events: try YAMLEventStream(try text(bytes)))
      do throws(YAMLFault) {
        let root = try parser.document()
        return (root, parser.faults)
      } catch {
        return (nil, parser.faults + [error])
      }
    } catch {
      return (nil, [error])
    }
  }

  private init(events: YAMLEventStream) { self.events = events }

  /// UTF-8 without its byte order mark.
  private static func text(_ bytes: [UInt8]) throws(YAMLFault) -> [UInt8] {
    guard bytes.count <= fileBytesMax else {
      throw YAMLFault(line: 1, "is \(bytes.count) bytes, must be at most \(fileBytesMax)")
    }
    guard String(validating: bytes, as: UTF8.self) != nil else {
      let line = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        .firstIndex { String(validating: $0, as: UTF8.self) == nil }
      throw YAMLFault(line: (line ?? 0) + 1, "is not UTF-8; save the file in that encoding")
    }
    if bytes.contains(0) {
      let line = bytes.prefix { $0 != 0 }.count { $0 == UInt8(ascii: "\n") } + 1
      throw YAMLFault(line: line, "has a NUL byte, as in UTF-16; save the file as UTF-8 text")
    }
    let withoutMark = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
    return JSONSurrogates.replaced(in: withoutMark)
  }

  private mutating func document() throws(YAMLFault) -> YAMLNode? {
    _ = try events.next()
    guard case .documentStart = try events.next().event else { return nil }
    let root = try node(try events.next(), depth: 1)
    _ = try events.next()
    let (event, line) = try events.next()
    if case .documentStart = event {
      faults.append(YAMLFault(line: line, "a second document begins; write everything into one"))
    }
    return root
  }

  private mutating func node(
    _ next: (event: YAMLEventStream.Event, line: Int), depth: Int
  ) throws(YAMLFault) -> YAMLNode {
    let (event, line) = next
    guard depth <= Self.depthMax else { throw YAMLFault(line: line, "is nested over \(Self.depthMax) levels deep") }
    nodes += 1
    guard nodes <= Self.nodesMax else { throw YAMLFault(line: line, "has over \(Self.nodesMax) values") }
    switch event {
    case .scalar(let scalar, let isTagged, let isAnchored):
      guard scalar.text.utf8.count <= Self.scalarBytesMax else {
        faults.append(
          YAMLFault(line: line, "a value of \(scalar.text.utf8.count) bytes, must be at most \(Self.scalarBytesMax)"))
        return YAMLNode(line: line, .refused)
      }
      return checked(YAMLNode(line: line, .scalar(scalar)), isTagged: isTagged, isAnchored: isAnchored)
    case .sequenceStart(let isTagged, let isAnchored):
      return checked(try sequence(line: line, depth: depth), isTagged: isTagged, isAnchored: isAnchored)
    case .mappingStart(let isTagged, let isAnchored):
      return checked(try mapping(line: line, depth: depth), isTagged: isTagged, isAnchored: isAnchored)
    case .alias:
      faults.append(YAMLFault(line: line, "an alias (*name) is not taken; write the value itself"))
      return YAMLNode(line: line, .refused)
    case .collectionEnd, .documentStart, .documentEnd, .streamStart, .streamEnd:
      throw YAMLFault(line: line, "a value is expected")
    }
  }

  /// `node`, or a refusal of what this YAML does not take on it.
  private mutating func checked(_ node: YAMLNode, isTagged: Bool, isAnchored: Bool) -> YAMLNode {
    if isTagged { faults.append(YAMLFault(line: node.line, "a tag (!name) is not taken; write the value alone")) }
    if isAnchored { faults.append(YAMLFault(line: node.line, "an anchor (&name) is not taken; write the value alone")) }
    return isTagged || isAnchored ? YAMLNode(line: node.line, .refused) : node
  }

  private mutating func sequence(line: Int, depth: Int) throws(YAMLFault) -> YAMLNode {
    var elements: [YAMLNode] = []
    while true {
      let next = try events.next()
      if case .collectionEnd = next.event { return YAMLNode(line: line, .sequence(elements)) }
      elements.append(try node(next, depth: depth + 1))
    }
  }

  private mutating func mapping(line: Int, depth: Int) throws(YAMLFault) -> YAMLNode {
    var entries: [YAMLEntry] = []
    var lines: [String: Int] = [:]
    while true {
      let next = try events.next()
      if case .collectionEnd = next.event { return YAMLNode(line: line, .mapping(entries)) }
      let key = try node(next, depth: depth + 1)
      let value = try node(try events.next(), depth: depth + 1)
      guard let name = accepted(key) else { continue }
      if let first = lines.updateValue(key.line, forKey: name) {
        faults.append(
          YAMLFault(line: key.line, "the key \(name.shownInFault) occurs twice; it is on line \(first) already"))
        lines[name] = first
        continue
      }
      entries.append(YAMLEntry(key: name, line: key.line, node: value))
    }
  }

  /// The text of a key that a configuration may have.
  private mutating func accepted(_ key: YAMLNode) -> String? {
    switch key.value {
    case .refused: return nil
    case .sequence, .mapping:
      faults.append(YAMLFault(line: key.line, "a list or a map cannot be a key"))
      return nil
    case .scalar(let scalar) where scalar.isPlain && scalar.text == "<<":
      faults.append(YAMLFault(line: key.line, "a merge key (<<) is not taken; write the keys themselves"))
      return nil
    case .scalar(let scalar): return scalar.text
    }
  }
}

/// JSON writes characters above U+FFFF as two escapes, which libyaml does not read: they become the character itself.
enum JSONSurrogates {
  static func replaced(in text: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var rest = text[...]
    while let backslash = rest.firstIndex(of: UInt8(ascii: "\\")) {
      result += rest[..<backslash]
      rest = rest[backslash...]
      if let character = pair(rest.prefix(12)) {
        result += String(Character(character)).utf8
        rest = rest.dropFirst(12)
      } else {
        // With the character after it, so that an escaped backslash begins no escape.
        result += rest.prefix(2)
        rest = rest.dropFirst(2)
      }
    }
    return result + rest
  }

  /// `\uD83D\uDE00`
  private static func pair(_ text: ArraySlice<UInt8>) -> Unicode.Scalar? {
    guard let high = unit(text.prefix(6)), let low = unit(text.dropFirst(6)),
      (0xD800..<0xDC00).contains(high), (0xDC00..<0xE000).contains(low)
    else { return nil }
    return Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
  }

  private static func unit(_ text: ArraySlice<UInt8>) -> UInt32? {
    guard text.count == 6, text.starts(with: [UInt8(ascii: "\\"), UInt8(ascii: "u")]),
      let pair = Hex.decode(text.dropFirst(2))
    else { return nil }
    return UInt32(pair[0]) << 8 | UInt32(pair[1])
  }
}
