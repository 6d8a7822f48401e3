import PrismProtocol

/// Reads the frames of a crash, the innermost first: of a list or a text in the meta, or of the payload.
enum CrashStack {
  static let framesMax = 64
  private static let payloadBytesMax = 65_536
  static let frameBytesMax = 300
  private static let wordBytesMax = 1024
  /// With functions that are inlined.
  private static let namedMax = 128
  private static let keys = ["stack", "frames", "backtrace", "stacktrace", "stackTrace", "traceback"]
  /// Words of a crash that may have its stack in further lines, as logs have them.
  private static let texts = ["exception.stacktrace", "exception", "error", "message", "MESSAGE"]

  static func frames(meta: JSONValue, payload: [UInt8]?) -> [CrashFrame] {
    for key in keys {
      guard let value = meta[key] else { continue }
      let frames = value.array.map(frames(ofList:)) ?? value.string.map(frames(of:)) ?? []
      if !frames.isEmpty { return frames }
    }
    let whole = payload.map { frames(of: String(decoding: $0.prefix(payloadBytesMax), as: UTF8.self)) } ?? []
    guard whole.isEmpty else { return whole }
    return texts.lazy.compactMap { meta[$0]?.string.map(broken) }.filter { $0.utf8.contains(UInt8(ascii: "\n")) }
      .map(frames(of:)).first { !$0.isEmpty } ?? []
  }

  /// The text in lines. A syslog daemon writes the end of a line as `#012`.
  private static func broken(_ text: String) -> String {
    text.utf8.contains(UInt8(ascii: "\n")) ? text : text.replacing("#012", with: "\n")
  }

  private static func cut(_ text: Substring, _ bytesMax: Int = frameBytesMax) -> String {
    String(decoding: text.utf8.prefix(bytesMax), as: UTF8.self)
  }

  // MARK: Lists

  /// The frames of the first thread, as texts or objects.
  private static func frames(ofList list: [JSONValue]) -> [CrashFrame] {
    var frames: [CrashFrame] = []
    for value in list.prefix(framesMax) {
      guard let text = value.string else {
        if let frame = frame(value) { frames.append(frame) }
        continue
      }
      guard let line = NumberedLine(text[...]) else {
        if !text.isEmpty { frames.append(CrashFrame(cut(text[...]))) }
        continue
      }
      if line.number == 0, !frames.isEmpty { break }
      if !line.isLeftOut { frames.append(CrashFrame(cut(line.rest))) }
    }
    return frames
  }

  /// An object with the names that crash reporters give.
  private static func frame(_ value: JSONValue) -> CrashFrame? {
    let word = { (keys: [String]) in
      keys.lazy.compactMap { value[$0]?.string }.first { !$0.isEmpty }.map { cut($0[...], wordBytesMax) }
    }
    let (module, file) = (word(["module", "image", "package"]), word(["file", "filename"]))
    let name = word(["function", "symbol", "name", "method"])
    let buildID = word(["buildId", "buildID", "build_id"])?.lowercased()
    let offset =
      word(["offset"]).flatMap { SymbolName.hex(digits($0)) } ?? value["offset"]?.int.flatMap { UInt64(exactly: $0) }
    if name == nil, let module, let offset {
      return CrashFrame(module: cut(module[...]), offset: offset, buildID: buildID)
    }
    guard let shown = name ?? word(["address", "offset"]) else { return nil }
    let place = (module ?? file).map { " (\($0))" } ?? ""
    let readable = name.flatMap { MangledName.path($0[...]) } ?? shown
    var frame = CrashFrame(
      text: cut((readable + place)[...]), name: name.map { cut($0[...]) }, module: module, file: file)
    if buildID != nil, let offset { (frame.buildID, frame.offset) = (buildID, offset) }
    return frame
  }

  /// The frames with the names that debug files have for them.
  static func named(_ frames: [CrashFrame], by names: [CodePlace: [SymbolName]]) -> [CrashFrame] {
    let named = frames.flatMap { frame in
      guard let names = frame.place.flatMap({ names[$0] }), !names.isEmpty else { return [frame] }
      return names.enumerated().map { CrashFrame($1, at: frame, isInline: $0 < names.count - 1) }
    }
    return Array(named.prefix(namedMax))
  }

  private static func digits(_ text: String) -> Substring { text.hasPrefix("0x") ? text.dropFirst(2) : text[...] }

  // MARK: Texts

  static func frames(of text: String) -> [CrashFrame] {
    let lines = broken(text).split(separator: "\n", maxSplits: 4000, omittingEmptySubsequences: false).prefix(4000)
    if lines.first.map(isAddress) == true { return addresses(Array(lines)) }
    if let routine = lines.firstIndex(where: { $0.hasPrefix("goroutine ") }) {
      return Array(goFrames(lines[(routine + 1)...].prefix { !$0.isEmpty }).prefix(framesMax))
    }
    // faulthandler writes the innermost frame first, and the thread of the fault among the others.
    if let head = lines.firstIndex(where: { $0.hasPrefix("Current thread 0x") })
      ?? lines.firstIndex(where: { $0.hasSuffix("(most recent call first):") })
    {
      return Array(lines[(head + 1)...].prefix { !$0.isEmpty }.compactMap(pythonFrame).prefix(framesMax))
    }
    let python = lines.compactMap(pythonFrame)
    if !python.isEmpty { return Array(python.reversed().prefix(framesMax)) }
    return frames(ofLines: lines)
  }

  /// The numbered lines of the first thread, or lines in a form of their own.
  private static func frames(ofLines lines: ArraySlice<Substring>) -> [CrashFrame] {
    var (frames, isNumbered) = ([CrashFrame](), false)
    for line in lines where frames.count < framesMax {
      defer { isNumbered = NumberedLine(line) != nil }
      if let numbered = NumberedLine(line) {
        if numbered.number == 0, !frames.isEmpty { break }
        if !numbered.isLeftOut { frames.append(CrashFrame(cut(numbered.rest))) }
      } else if isNumbered, line.trimmed.hasPrefix("at ") {
        // The second line of a frame of Rust: `at ./src/main.rs:4:5`.
        if !frames.isEmpty { frames[frames.count - 1].setPlace(line.trimmed.dropFirst(3)) }
      } else if let own = unnumbered(line.trimmed) {
        frames.append(CrashFrame(cut(own)))
      }
    }
    return frames
  }

  /// `at total (cart.js:7:3)`, with a brace where Node shows the error's members, `./shop(pay+0x1c) [0x55d0]`, and
  /// `pay+0x1c/0x80 [shop]`. The kernel's `? pay` is a guess of it.
  private static func unnumbered(_ line: Substring) -> Substring? {
    if line.hasPrefix("at ") { return line.dropFirst(3).dropLast(line.hasSuffix(" {") ? 2 : 0) }
    if line.hasSuffix("]"), line.contains("("), line.lastRange(of: "[0x") != nil { return line }
    let stamp =
      line.hasPrefix("[") ? line.firstIndex(of: "]").map { line[line.index(after: $0)...].trimmed } ?? line : line
    let isKernel = stamp.firstPlace(of: "+0x") != nil && stamp.firstPlace(of: "/0x") != nil
    return isKernel && !stamp.hasPrefix("?") && !stamp.hasPrefix("RSP") ? stamp : nil
  }

  // MARK: Addresses, as libprism wrote them: one a line, then the memory map

  private static func isAddress(_ line: Substring) -> Bool {
    line.hasPrefix("0x") && line.utf8.count <= 18 && SymbolName.hex(line.dropFirst(2)) != nil
  }

  private struct Mapping {
    let start: UInt64, end: UInt64, base: UInt64
    let name: Substring
  }

  private static func addresses(_ lines: [Substring]) -> [CrashFrame] {
    let addresses = lines.prefix { isAddress($0) }
    let maps = lines.dropFirst(addresses.count).compactMap(mapping)
    return addresses.prefix(framesMax).map { line in
      guard let address = SymbolName.hex(line.dropFirst(2)),
        let map = maps.first(where: { $0.start <= address && address < $0.end })
      else { return CrashFrame("unknown") }
      return CrashFrame(module: cut(map.name), offset: address - map.start &+ map.base)
    }
  }

  /// A line of /proc/PID/maps: proc(5).
  private static func mapping(_ line: Substring) -> Mapping? {
    let parts = line.split(separator: " ", maxSplits: 5)
    guard parts.count == 6, parts[1].contains("x"), let base = SymbolName.hex(parts[2]) else { return nil }
    let range = parts[0].split(separator: "-")
    guard range.count == 2, let start = SymbolName.hex(range[0]), let end = SymbolName.hex(range[1]) else { return nil }
    return Mapping(start: start, end: end, base: base, name: parts[5].drop { $0 == " " })
  }

  // MARK: Languages

  /// `  File "/srv/app.py", line 7, in total`; behind bars in a group of exceptions, without the comma by faulthandler.
  private static func pythonFrame(_ line: Substring) -> CrashFrame? {
    let line = line.drop { " |+".contains($0) }
    guard line.hasPrefix("File \""), let end = line.firstPlace(of: "\", line ") else { return nil }
    let file = line[line.index(line.startIndex, offsetBy: 6)..<end.lowerBound]
    let number = line[end.upperBound...].prefix { $0.isASCII && $0.isNumber }
    let rest = line[number.endIndex...].drop { $0 == "," }
    guard !number.isEmpty else { return nil }
    let function = rest.hasPrefix(" in ") ? String(rest.dropFirst(4)) : "<module>"
    return CrashFrame(
      text: cut("\(function) (\(file):\(number))"[...]), name: function, module: nil, file: String(file),
      line: Int(number))
  }

  /// `main.total(...)`, and under it the place, which begins with a tab.
  private static func goFrames(_ lines: ArraySlice<Substring>) -> [CrashFrame] {
    var frames: [CrashFrame] = []
    for line in lines where !line.hasPrefix("created by ") && !line.hasPrefix("exit status ") {
      if !line.hasPrefix("\t") {
        frames.append(CrashFrame(text: cut(line), name: cut(line), module: nil, file: nil))
      } else if let place = line.trimmed.split(separator: " ").first, frames.last?.file == nil, !frames.isEmpty {
        frames[frames.count - 1].setPlace(place)
      }
    }
    return frames
  }
}

/// A line of a stack that begins with its number: `#3 0x55d1 in total at cart.c:7`, `3 [ra] 0x55d1 total + 12 in shop`.
private struct NumberedLine {
  let number: Int
  /// Without number, marks and address.
  let rest: Substring
  /// The reporter marked it as no function of a person's.
  let isLeftOut: Bool

  init?(_ line: Substring) {
    let line = line.trimmed
    let digits = (line.first == "#" ? line.dropFirst() : line).prefix { $0.isASCII && $0.isNumber }
    guard (1...3).contains(digits.count), let number = Int(digits) else { return nil }
    var rest = line[digits.endIndex...].drop { $0 == ":" }
    guard rest.first == " " || rest.first == "\t" else { return nil }
    rest = rest.trimmed
    var marks: [Substring] = []
    while rest.hasPrefix("["), let end = rest.firstIndex(of: "]"), rest[rest.index(after: end)...].hasPrefix(" ") {
      marks.append(rest[...end])
      rest = rest[rest.index(after: end)...].trimmed
    }
    if let space = rest.firstIndex(of: " "), rest.hasPrefix("0x") { rest = rest[space...].trimmed }
    for word in ["in ", "- "] where rest.hasPrefix(word) { rest = rest.dropFirst(word.count) }
    guard !rest.isEmpty else { return nil }
    (self.number, self.rest) = (number, rest)
    isLeftOut = marks.contains("[thunk]") || marks.contains("[system]")
  }
}
