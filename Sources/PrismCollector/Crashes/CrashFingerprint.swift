import PrismBase
import PrismPacket
import PrismProtocol

/// The key of a group of crashes: the common parts of crashes with one cause (docs/page.md, "Groups of crashes").
struct CrashFingerprint: Sendable, Hashable {
  private static let partsMax = 6

  /// The details that operators can split a group by, beside those of each key.
  enum Detail: String, Codable, Sendable, CaseIterable {
    /// The words of the crash, also where there is a stack.
    case words
    /// All functions of the app, and not the innermost ones only.
    case frames
  }

  /// 16 hexadecimal digits.
  let text: String

  /// - Parameter text: of another fingerprint.
  init(text: String) { self.text = text }

  /// - Parameters:
  ///   - text: the words of the crash. They are part of the key only if there is no frame.
  ///   - frames: the innermost first.
  ///   - app: its name, or that of the program.
  ///   - detail: more that is part of the key.
  init(type: String, text: String, frames: [CrashFrame], app: String = "", detail: Detail? = nil) {
    let parts = Self.parts(frames, app: app, limit: detail == .frames ? CrashStack.framesMax : Self.partsMax)
    var key = [type] + (parts.isEmpty ? ["", CrashText.plain(text)] + Self.program(app) : parts)
    if let detail { key += ["", detail.rawValue] + (detail == .words ? [CrashText.plain(text)] : []) }
    let hash = (try? Hashing.sha256(Array(key.joined(separator: "\n").utf8))) ?? []
    self.text = Hex.encode(Array(hash.prefix(8)))
  }

  /// The names of the app's innermost functions. A frame without a name counts by its place in the module, unless the module's
  /// innermost frame has a name. A cycle of calls counts once. If no name has a scope, as `main`, they are those of one program.
  static func parts(_ frames: [CrashFrame], app: String = "", limit: Int = partsMax) -> [String] {
    let own = CrashFrameTable.standard.appFrames(frames)
    var hasNames: [String: Bool] = [:]
    for frame in own where frame.module.map({ hasNames[$0] == nil }) == true {
      hasNames[frame.module ?? ""] = frame.function != nil
    }
    let parts = withoutCycles(own.compactMap { part(of: $0, hasNames) }).prefix(limit)
    let program = own.lazy.compactMap(\.module).first ?? app
    guard !parts.isEmpty, !parts.contains(where: \.hasScope) else { return parts.map(\.text) }
    return parts.map(\.text) + Self.program(program)
  }

  private static func program(_ name: String) -> [String] {
    name.isEmpty ? [] : ["in \(CrashText.plain(CrashFrame.baseName(name[...])))"]
  }

  /// A part of the key. The name of a function with a scope, as a class or a package, is one function of all programs.
  private struct Part: Equatable {
    let text: String, hasScope: Bool
  }

  private static func part(of frame: CrashFrame, _ hasNames: [String: Bool]) -> Part? {
    let file = { frame.file.map { CrashText.file(CrashFrame.baseName($0[...])) } }
    if let function = frame.function {
      let isNamedByFile = frame.isScript || function.contains("<") && function.hasSuffix(">")
      // Go's package of each program is `main`.
      let hasScope = function.contains("::") || function.contains(".") && !function.hasPrefix("main.")
      return Part(
        text: isNamedByFile ? "\(function) \(file() ?? "")" : function, hasScope: hasScope && !frame.isScript)
    }
    guard let module = frame.module, let offset = frame.offset else {
      return file().map { Part(text: $0, hasScope: false) }
    }
    let place = Part(text: "\(frame.buildID ?? module)+0x\(String(offset, radix: 16))", hasScope: true)
    return hasNames[module] == true ? nil : place
  }

  private static let cycleMax = 8

  /// Repeated calls of the same functions count once. A cycle to the end of the stack begins with its least part: the stack was
  /// full, and it is chance which function ran then.
  private static func withoutCycles(_ parts: [Part]) -> [Part] {
    var (found, place) = ([Part](), 0)
    while place < parts.count {
      var (length, end) = (1, place + 1)
      for period in 1...cycleMax where end < place + 2 * period && place + 2 * period <= parts.count {
        var last = place + period
        while last < parts.count, parts[last] == parts[last - period] { last += 1 }
        if last >= place + 2 * period { (length, end) = (period, last) }
      }
      var cycle = Array(parts[place..<place + length])
      if end == parts.count, end - place >= 3 * length {
        let turns = cycle.indices.map { Array(cycle[$0...] + cycle[..<$0]) }
        cycle = turns.min { $0.map(\.text).lexicographicallyPrecedes($1.map(\.text)) } ?? cycle
        place = end
      } else {
        place += (end - place) / length * length
      }
      found += cycle
    }
    return found
  }
}

/// The words of a crash without what differs from one run to the next: numbers, addresses, ids, and parts of paths.
enum CrashText {
  private static let homes = ["/home/", "/tmp/", "/var/tmp/", "/run/user/"]

  /// The number behind `signal` stays: it is the kind of the crash.
  static func plain(_ text: String) -> String {
    var (words, isSignal) = ([String](), false)
    for word in text.split(separator: " ") {
      words.append(isSignal ? String(word) : self.word(word))
      isSignal = word.lowercased() == "signal"
    }
    return words.joined(separator: " ")
  }

  /// The name of a file without the hash of a bundle: `main.#.js`.
  static func file(_ name: String) -> String {
    let pieces = name.prefix { $0 != "?" }.split(omittingEmptySubsequences: false) { $0 == "." || $0 == "-" }
    let separators = name.filter { $0 == "." || $0 == "-" }
    return zip(pieces, Array(separators).map(String.init) + [""]).map { piece, separator in
      (isRandom(piece) || run(Array(piece.utf8)) == "#" && piece.utf8.count > 5 ? "#" : piece) + separator
    }.joined()
  }

  private static func word(_ word: Substring) -> String {
    guard let slash = word.firstIndex(of: "/") else { return runs(word) }
    let (head, path) = (word[..<slash], word[slash...])
    var parts = path.split(separator: "/", omittingEmptySubsequences: false).map { part in
      isRandom(part) ? "#" : runs(part)
    }
    if let home = homes.first(where: { path.hasPrefix($0) }) {
      let place = home.split(separator: "/").count + 1
      if parts.indices.contains(place), !parts[place].isEmpty { parts[place] = "#" }
    }
    return runs(head) + parts.joined(separator: "/")
  }

  /// Whether letters and digits change often, as in `tmpab3xk9q`.
  private static func isRandom(_ part: Substring) -> Bool {
    guard part.utf8.count >= 8, !part.contains(".") else { return false }
    let kinds = part.utf8.map(\.isASCIIDigit)
    return zip(kinds, kinds.dropFirst()).count { $0 != $1 } >= 2
  }

  /// `#` for addresses, UUIDs and long hexadecimal numbers, and for each run of digits.
  private static func runs(_ text: Substring) -> String {
    var (plain, run) = ("", [UInt8]())
    for byte in Array(text.utf8) + [0] {
      if byte.isASCIIDigit || isLetter(byte) || byte == UInt8(ascii: "-") {
        run.append(byte)
        continue
      }
      plain += self.run(run)
      run = []
      if byte != 0 { plain.unicodeScalars.append(Unicode.Scalar(byte)) }
    }
    return plain
  }

  private static func run(_ run: [UInt8]) -> String {
    let isAddress = run.starts(with: "0x".utf8) && run.dropFirst(2).allSatisfy(isHex)
    let isLong =
      run.count >= 6 && run.contains(where: \.isASCIIDigit) && run.allSatisfy { isHex($0) || $0 == UInt8(ascii: "-") }
    if isAddress || isLong { return "#" }
    var plain: [UInt8] = []
    for byte in run where !byte.isASCIIDigit || plain.last != UInt8(ascii: "#") {
      plain.append(byte.isASCIIDigit ? UInt8(ascii: "#") : byte)
    }
    return String(decoding: plain, as: UTF8.self)
  }

  /// Bytes of other alphabets are letters.
  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | UInt8(ascii: " ")) || byte > UInt8(ascii: "~")
  }

  static func isHex(_ byte: UInt8) -> Bool {
    byte.isASCIIDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | UInt8(ascii: " "))
  }
}

/// An operator's rule about which crashes are one group: for those with one key, also the ones that are to come.
enum CrashRule: ControlValue {
  /// They belong to the group with this fingerprint.
  case into(String)
  /// They are several groups, by more of their details.
  case split(CrashFingerprint.Detail)

  var controlJSON: JSONValue {
    switch self {
    case .into(let fingerprint): ["into": .string(fingerprint)]
    case .split(let detail): ["splitBy": .string(detail.rawValue)]
    }
  }

  init?(controlJSON json: JSONValue) {
    if let fingerprint = json["into"]?.string {
      self = .into(fingerprint)
    } else if let detail = json["splitBy"]?.string.flatMap({ CrashFingerprint.Detail(rawValue: $0) }) {
      self = .split(detail)
    } else {
      return nil
    }
  }
}

/// The rules of operators, by the fingerprints of the keys that they are about.
struct CrashRules: Sendable, Equatable {
  /// Rules that lead from one to the next.
  private static let stepsMax = 8

  var rules: [String: CrashRule] = [:]

  /// The fingerprints that rules lead a crash through: the first is that of its key, the last that of its group.
  func path(of crash: CrashReport) -> [CrashFingerprint] {
    var path = [crash.fingerprint]
    while path.count <= Self.stepsMax, let last = path.last, let rule = rules[last.text] {
      switch rule {
      case .into(let other): path.append(CrashFingerprint(text: other))
      case .split(let detail): path.append(crash.fingerprint(detail))
      }
    }
    return path
  }

  /// The fingerprints that rules of merging lead through, from this one.
  private func steps(from fingerprint: String) -> [String] {
    var steps = [fingerprint]
    while steps.count <= Self.stepsMax, case .into(let other)? = rules[steps.last ?? ""] { steps.append(other) }
    return steps
  }

  /// The fingerprint that rules of merging lead this one to.
  func target(of fingerprint: String) -> String { steps(from: fingerprint).last ?? fingerprint }

  /// Whether `fingerprint` is led to `group` by rules of merging.
  func leads(_ fingerprint: String, to group: String) -> Bool {
    let steps = steps(from: fingerprint)
    return steps.count > Self.stepsMax || steps.contains(group)
  }
}
