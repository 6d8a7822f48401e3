import PrismProtocol

/// Reads the frames of a crash, the innermost first: of a list or a text in the meta, or of the payload.
enum CrashStack {
  static let framesMax = 64
  private static let payloadBytesMax = 65_536
  private static let frameBytesMax = 300
  private static let keys = ["stack", "frames", "backtrace", "stacktrace", "stackTrace", "traceback"]

  static func frames(meta: JSONValue, payload: [UInt8]?) -> [String] {
    for key in keys {
      guard let value = meta[key] else { continue }
      let frames = value.array.map { $0.prefix(framesMax).compactMap(frame) } ?? value.string.map(frames(of:)) ?? []
      if !frames.isEmpty { return frames.map(cut) }
    }
    guard let payload else { return [] }
    return frames(of: String(decoding: payload.prefix(payloadBytesMax), as: UTF8.self)).map(cut)
  }

  private static func cut(_ frame: String) -> String {
    String(decoding: frame.utf8.prefix(frameBytesMax), as: UTF8.self)
  }

  /// A frame of a list: a text, or an object with the names that crash reporters give.
  private static func frame(_ value: JSONValue) -> String? {
    if let text = value.string { return text.isEmpty ? nil : text }
    let word = { (keys: [String]) in keys.lazy.compactMap { value[$0]?.string }.first }
    guard let name = word(["function", "symbol", "name", "method"]) ?? word(["address", "offset"]) else { return nil }
    return name + (word(["module", "image", "file", "filename", "package"]).map { " (\($0))" } ?? "")
  }

  static func frames(of text: String) -> [String] {
    let lines = text.split(separator: "\n", maxSplits: 4000, omittingEmptySubsequences: false).prefix(4000)
    if lines.first.map(isAddress) == true { return addresses(Array(lines)) }
    let python = lines.compactMap(pythonFrame)
    if !python.isEmpty { return Array(python.reversed().prefix(framesMax)) }
    return Array(lines.lazy.compactMap(numberedFrame).prefix(framesMax))
  }

  // MARK: Addresses, as libprism writes them: one a line, then the memory map

  private static func isAddress(_ line: Substring) -> Bool {
    line.hasPrefix("0x") && line.utf8.count <= 18 && UInt64(line.dropFirst(2), radix: 16) != nil
  }

  private struct Mapping {
    let start: UInt64, end: UInt64, base: UInt64
    let name: Substring
  }

  private static func addresses(_ lines: [Substring]) -> [String] {
    let addresses = lines.prefix { isAddress($0) }
    let maps = lines.dropFirst(addresses.count).compactMap(mapping)
    return addresses.prefix(framesMax).map { line in
      guard let address = UInt64(line.dropFirst(2), radix: 16),
        let map = maps.first(where: { $0.start <= address && address < $0.end })
      else { return "unknown" }
      let name = map.name.split(separator: "/").last ?? map.name
      return "\(name)+0x\(String(address - map.start + map.base, radix: 16))"
    }
  }

  /// A line of /proc/PID/maps: proc(5).
  private static func mapping(_ line: Substring) -> Mapping? {
    let parts = line.split(separator: " ", maxSplits: 5)
    guard parts.count == 6, parts[1].contains("x"), let base = UInt64(parts[2], radix: 16) else { return nil }
    let range = parts[0].split(separator: "-")
    guard range.count == 2, let start = UInt64(range[0], radix: 16), let end = UInt64(range[1], radix: 16) else {
      return nil
    }
    return Mapping(start: start, end: end, base: base, name: parts[5].drop { $0 == " " })
  }

  // MARK: Text

  /// `  File "/srv/app.py", line 7, in total`
  private static func pythonFrame(_ line: Substring) -> String? {
    let line = line.drop { $0 == " " }
    guard line.hasPrefix("File \""), let end = line.range(of: "\", line ") else { return nil }
    let file = line[line.index(line.startIndex, offsetBy: 6)..<end.lowerBound]
    let rest = line[end.upperBound...].split(separator: ",", maxSplits: 1)
    guard let number = rest.first else { return nil }
    let function = rest.count == 2 && rest[1].hasPrefix(" in ") ? rest[1].dropFirst(4) : "module"
    return "\(function) (\(file):\(number))"
  }

  /// `#3 0x55d1 in total at cart.c:7`, `3 0x55d1 total + 12 in shop`, `    at total (cart.js:7:3)`
  private static func numberedFrame(_ line: Substring) -> String? {
    let line = line.drop { $0 == " " || $0 == "\t" }
    if line.hasPrefix("at ") { return String(line.dropFirst(3)) }
    let number = (line.first == "#" ? line.dropFirst() : line).prefix { $0.isASCII && $0.isNumber }
    guard !number.isEmpty, number.count <= 3 else { return nil }
    var rest = line[number.endIndex...].drop { $0 == ":" }
    guard rest.first == " " || rest.first == "\t" else { return nil }
    rest = rest.drop { $0 == " " || $0 == "\t" }
    if let space = rest.firstIndex(of: " "), rest.hasPrefix("0x") { rest = rest[rest.index(after: space)...] }
    if rest.hasPrefix("in ") { rest = rest.dropFirst(3) }
    return rest.isEmpty ? nil : String(rest)
  }
}

extension Substring {
  fileprivate func range(of text: String) -> Range<Index>? { firstRange(of: text) }
}
