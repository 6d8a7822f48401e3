/// Text patterns, where `*` is any text and `?` any character.
public enum Glob {
  /// In time of at most pattern times text: after a mismatch only the last `*` takes one character more.
  public static func matches(_ pattern: String, _ text: String) -> Bool {
    let (pattern, name) = (Array(pattern.utf8), Array(text.utf8))
    var (at, position) = (0, 0)
    var star: (at: Int, position: Int)?
    while position < name.count {
      if at < pattern.count, pattern[at] == UInt8(ascii: "*") {
        star = (at, position)
        at += 1
      } else if at < pattern.count, pattern[at] == name[position] || pattern[at] == UInt8(ascii: "?") {
        (at, position) = (at + 1, position + 1)
      } else if let last = star {
        star = (last.at, last.position + 1)
        (at, position) = (last.at + 1, last.position + 1)
      } else {
        return false
      }
    }
    return pattern[at...].allSatisfy { $0 == UInt8(ascii: "*") }
  }
}
