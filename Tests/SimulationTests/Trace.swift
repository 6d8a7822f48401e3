import Glibc

/// The events, in order: hashed as they come, so that two runs can be compared. The last lines are kept for the reader
/// of a failure.
struct Trace {
  private static let linesMax = 120

  /// FNV-1a over every line.
  private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
  private(set) var count = 0
  private var lines: [String] = []
  /// A run that is being taken down says nothing.
  var isMuted = false
  /// `PRISM_TRACE=PATH` writes all of it there.
  private let file = getenv("PRISM_TRACE").flatMap { path in
    let file = fopen(path, "a")
    if let file { setlinebuf(file) }
    return file
  }

  mutating func note(_ line: String) {
    guard !isMuted else { return }
    for byte in line.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    count += 1
    if let file { fputs(line + "\n", file) }
    lines.append(line)
    if lines.count > 2 * Self.linesMax { lines.removeFirst(Self.linesMax) }
  }

  /// The last `linesMax` lines.
  var tail: String { lines.suffix(Self.linesMax).joined(separator: "\n") }
}

/// Something that was promised did not hold.
struct Broken: Error, CustomStringConvertible {
  let description: String
}
