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
    let kinds = part.utf8.map(isDigit)
    return zip(kinds, kinds.dropFirst()).count { $0 != $1 } >= 2
  }

  /// `#` for addresses, UUIDs and long hexadecimal numbers, and for each run of digits.
  private static func runs(_ text: Substring) -> String {
    var (plain, run) = ("", [UInt8]())
    for byte in Array(text.utf8) + [0] {
      if isDigit(byte) || isLetter(byte) || byte == UInt8(ascii: "-") {
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
      run.count >= 6 && run.contains(where: isDigit) && run.allSatisfy { isHex($0) || $0 == UInt8(ascii: "-") }
    if isAddress || isLong { return "#" }
    var plain: [UInt8] = []
    for byte in run where !isDigit(byte) || plain.last != UInt8(ascii: "#") {
      plain.append(isDigit(byte) ? UInt8(ascii: "#") : byte)
    }
    return String(decoding: plain, as: UTF8.self)
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  /// Bytes of other alphabets are letters.
  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | UInt8(ascii: " ")) || byte > UInt8(ascii: "~")
  }

  private static func isHex(_ byte: UInt8) -> Bool {
    isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | UInt8(ascii: " "))
  }
}
