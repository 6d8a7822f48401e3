extension String {
  /// At most `bytesMax` bytes of UTF-8, cut between characters.
  package func cut(atBytes bytesMax: Int) -> String {
    guard utf8.count > bytesMax else { return self }
    var result = ""
    var bytes = 0
    for character in self {
      bytes += character.utf8.count
      if bytes > bytesMax { break }
      result.append(character)
    }
    return result
  }
}
