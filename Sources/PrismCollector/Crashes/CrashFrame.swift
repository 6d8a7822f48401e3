/// One frame of a stack as a crash reporter wrote it, taken apart.
struct CrashFrame: Sendable, Equatable {
  /// As the page shows it.
  let text: String
  /// Without offset, parameters and generics; nil: the reporter knew no name.
  var function: String?
  /// The file name of the program or the library.
  var module: String?
  /// Of the module, in hexadecimal digits.
  var buildID: String?
  /// From the beginning of the module, where no name is known, or a debug file may know more.
  var offset: UInt64?
  /// The source file, with its path.
  var file: String?
  /// Of the file; nil: it is not known.
  private(set) var line: Int?
  /// The compiler put the function into its caller, the next frame.
  private(set) var isInline = false

  /// A frame without a name, by its place in a module.
  init(module: String, offset: UInt64, buildID: String? = nil) {
    text = "\(Self.baseName(module[...]))+0x\(String(offset, radix: 16))"
    (self.module, self.offset, self.buildID) = (Self.baseName(module[...]), offset, buildID)
  }

  /// Takes a line apart whose number and address are gone: `pay (n=3) at shop.c:41`, `./shop(pay+0x1c) [0x55d0]`.
  init(_ line: String) {
    text = line
    let rest = line[...]
    if readBacktraceSymbols(rest) || readCoredump(rest) || readKernel(rest) || readImage(rest) || readFileOffset(rest) {
      return
    }
    readName(rest)
  }

  /// A frame that an object describes.
  init(text: String, name: String?, module: String?, file: String?, line: Int? = nil) {
    self.text = text
    if let name { readName(name[...]) }
    self.module = module.map { Self.baseName($0[...]) } ?? self.module
    if let file { (self.file, self.line) = (file, line) }
  }

  /// A function that a debug file names at the place of a frame.
  init(_ name: SymbolName, at raw: CrashFrame, isInline: Bool) {
    function = name.function.flatMap { CrashName.plain($0[...]) }
    let place = name.file.map { " (\(Self.baseName($0[...]))\(name.line.map { ":\($0)" } ?? ""))" } ?? ""
    text = String(
      decoding: "\(function ?? name.function ?? "??")\(place)".utf8.prefix(CrashStack.frameBytesMax), as: UTF8.self)
    (module, buildID, offset) = (raw.module, raw.buildID, raw.offset)
    (file, line, self.isInline) = (name.file, name.line, isInline)
  }

  /// The place that a debug file is asked about.
  var place: CodePlace? {
    guard let buildID, let offset else { return nil }
    return CodePlace(buildID: buildID, offset: offset)
  }

  /// Whether its function has no scope but its file.
  var isScript: Bool {
    guard let file, let dot = file.utf8.lastIndex(of: UInt8(ascii: ".")) else { return false }
    return CrashFrameTable.scripts.contains(String(file[dot...].prefix { $0 != "?" }))
  }

  // MARK: Forms

  /// `./shop(pay+0x1c) [0x55d0]`, `./shop(+0x1f2c) [0x55d0]`, `[0x55d0]`: backtrace_symbols(3)
  private mutating func readBacktraceSymbols(_ line: Substring) -> Bool {
    guard line.hasSuffix("]"), let address = line.lastRange(of: "[0x") else { return false }
    let place = line[..<address.lowerBound].trimmed
    guard let open = place.lastIndex(of: "("), place.hasSuffix(")") else {
      return place.isEmpty
    }
    module = Self.baseName(place[..<open])
    setName(place[place.index(after: open)...].dropLast())
    return true
  }

  /// `pay (shop + 0x1f2c)`: systemd-coredump; `pay (/usr/bin/shop+0x1f2c)`: AddressSanitizer
  private mutating func readCoredump(_ line: Substring) -> Bool {
    guard line.hasSuffix(")"), let plus = line.lastRange(of: " + 0x") ?? line.lastRange(of: "+0x"),
      let open = line[..<plus.lowerBound].lastRange(of: " ("), !line[open.upperBound...].contains("="),
      let place = SymbolName.hex(line[plus.upperBound...].dropLast())
    else { return false }
    module = SymbolName.known(line[open.upperBound..<plus.lowerBound]).map { Self.baseName($0[...]) }
    function = CrashName.plain(line[..<open.lowerBound])
    if function == nil, module != nil { offset = place }
    return true
  }

  /// `pay+0x1c/0x80 [shop]`: the kernel
  private mutating func readKernel(_ line: Substring) -> Bool {
    guard let plus = line.firstPlace(of: "+0x"), let slash = line[plus.upperBound...].firstPlace(of: "/0x"),
      SymbolName.hex(line[plus.upperBound..<slash.lowerBound]) != nil
    else { return false }
    let tail = line[slash.upperBound...].split(separator: " ")
    if tail.count > 1, tail[1].hasPrefix("["), tail[1].hasSuffix("]") {
      module = String(tail[1].dropFirst().dropLast())
    }
    function = CrashName.plain(line[..<plus.lowerBound].split(separator: ":").last ?? "")
    return true
  }

  /// `shop 0x000055d0c3a011c9 total + 35`: Swift's runtime
  private mutating func readImage(_ line: Substring) -> Bool {
    let parts = line.split(separator: " ", maxSplits: 2)
    guard parts.count == 3, parts[1].hasPrefix("0x"), SymbolName.hex(parts[1].dropFirst(2)) != nil else { return false }
    module = Self.baseName(parts[0])
    setName(parts[2].drop { $0 == " " })
    return true
  }

  /// `/usr/bin/shop+0x1f2c`
  private mutating func readFileOffset(_ line: Substring) -> Bool {
    guard let plus = line.lastRange(of: "+0x"), let place = SymbolName.hex(line[plus.upperBound...]) else {
      return false
    }
    let path = line[..<plus.lowerBound]
    guard path.contains("/") || path.firstPlace(of: ".so") != nil, !path.contains(where: { "( )".contains($0) }) else {
      return false
    }
    (module, offset) = (Self.baseName(path), place)
    return true
  }

  /// Names of gdb, Swift, Rust, Go, Java, Node and Python, with what follows them.
  private mutating func readName(_ line: Substring) {
    var rest = line
    if let from = rest.lastRange(of: " from /") {
      module = Self.baseName(rest[from.upperBound...])
      rest = rest[..<from.lowerBound]
    }
    if let at = rest.lastRange(of: " at "), rest[at.upperBound...].contains(where: { "./".contains($0) }) {
      setPlace(rest[at.upperBound...])
      rest = rest[..<at.lowerBound]
    }
    // AddressSanitizer: `pay(int) /src/till.cc:41:3`
    if file == nil, let space = rest.lastIndex(of: " "), Self.isPlaceAlone(rest[rest.index(after: space)...]) {
      setPlace(rest[rest.index(after: space)...])
      rest = rest[..<space] == "async" ? "" : rest[..<space].trimmed
    }
    if let last = rest.lastRange(of: " in "), !rest[last.upperBound...].contains("("),
      file != nil || Self.endsWithOffset(rest[..<last.lowerBound])
    {
      module = Self.baseName(rest[last.upperBound...])
      rest = rest[..<last.lowerBound]
    }
    if file == nil, rest.hasSuffix(")"), let open = rest.lastIndex(of: "(") {
      let inner = rest[rest.index(after: open)...].dropLast()
      if Self.isPlace(inner) { setPlace(inner) }
    }
    if file == nil, Self.isPlaceAlone(rest) {
      setPlace(rest)
    } else {
      setName(rest)
    }
  }

  /// A name with an offset in it, or an offset alone.
  private mutating func setName(_ text: Substring) {
    var name = text
    if let plus = text.lastIndex(of: "+"), let place = Self.number(text[text.index(after: plus)...].trimmed) {
      name = text[..<plus]
      offset = place
    }
    function = CrashName.plain(name)
    if function != nil || module == nil { offset = nil }
  }

  // MARK: Parts

  private static func endsWithOffset(_ text: Substring) -> Bool {
    guard let plus = text.lastIndex(of: "+") else { return false }
    return number(text[text.index(after: plus)...].trimmed) != nil
  }

  static func baseName(_ path: Substring) -> String { String(path.split(separator: "/").last ?? path) }

  private static func number(_ text: Substring) -> UInt64? {
    text.hasPrefix("0x") ? SymbolName.hex(text.dropFirst(2)) : UInt64(text)
  }

  /// Takes a file with its line, and maybe a column: `shop.c:41`, `file:///srv/cart.js:7:3`.
  mutating func setPlace(_ text: Substring) {
    var parts = text.split(separator: ":", omittingEmptySubsequences: false)
    while parts.count > 1, let last = parts.last, last.allSatisfy({ $0.isASCII && $0.isNumber }) {
      line = Int(last)
      parts.removeLast()
    }
    let path = parts.joined(separator: ":")
    file = path.hasPrefix("file://") ? String(path.dropFirst(7)) : path
  }

  /// Whether a text in parentheses names a source file, and no parameters: `cart.js:7:3`, `till.c`.
  private static func isPlace(_ text: Substring) -> Bool {
    guard !text.isEmpty, text != "...", text != "<anonymous>" else { return text == "<anonymous>" }
    let isNumbered =
      text.split(separator: ":").count > 1 && text.split(separator: ":").last?.allSatisfy(\.isNumber) == true
    return isNumbered || text.contains(".") && !text.contains { " ,=:*&".contains($0) }
  }

  /// Whether a line is a place in a file and nothing else: `/srv/app.js:3:1`.
  private static func isPlaceAlone(_ text: Substring) -> Bool {
    !text.contains(" ") && !text.contains("(") && text.split(separator: ":").last?.allSatisfy(\.isNumber) == true
      && text.contains(":") && (text.contains("/") || text.contains("."))
  }
}

extension Substring {
  /// Without spaces and tabs at both ends.
  var trimmed: Substring {
    var rest = drop { $0 == " " || $0 == "\t" }
    while let last = rest.last, last == " " || last == "\t" { rest.removeLast() }
    return rest
  }

  func lastRange(of text: String) -> Range<Index>? { range(of: text) { $0.last(where: $1) } }

  /// The first place of `text`. The search of the standard library goes by characters, and takes ten times as long.
  func firstPlace(of text: String) -> Range<Index>? { range(of: text) { $0.first(where: $1) } }

  private func range(of text: String, _ find: (ClosedRange<Int>, (Int) -> Bool) -> Int?) -> Range<Index>? {
    let found = utf8.withContiguousStorageIfAvailable { bytes in
      text.utf8.withContiguousStorageIfAvailable { wanted -> Int? in
        guard let first = wanted.first, bytes.count >= wanted.count else { return nil }
        return find(0...(bytes.count - wanted.count)) {
          bytes[$0] == first && bytes[$0..<($0 + wanted.count)].elementsEqual(wanted)
        }
      }
    }
    guard case .some(.some(.some(let place))) = found else { return nil }
    let start = utf8.index(startIndex, offsetBy: place)
    return start..<utf8.index(start, offsetBy: text.utf8.count)
  }
}
