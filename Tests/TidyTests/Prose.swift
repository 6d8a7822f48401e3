/// The text that people read, as sentences: pages, manual pages, comments and string literals.
enum Prose {
  /// A run of text that no sentence crosses: a paragraph, an item of a list, a cell of a table, a comment, a literal.
  struct Passage: Equatable {
    /// Counts from 1.
    let line: Int
    var text: String
    /// A heading and a cell of a table need not be whole sentences.
    var isFragment = false
  }

  struct Sentence: Equatable {
    let line: Int
    /// In lower case; code in backticks is the one word `code`.
    let words: [String]
    let isQuestion: Bool
  }

  static func sentences(of passages: [Passage]) -> [Sentence] { passages.flatMap(sentences) }

  /// Splits at `.`, `?` and `!` before a space; `e.g.` and `i.e.` don't end a sentence.
  static func sentences(of passage: Passage) -> [Sentence] {
    var splitter = SentenceSplitter(line: passage.line)
    for byte in passage.text.utf8 { splitter.take(byte) }
    return splitter.finish()
  }
}

/// Reads a passage byte by byte. Bytes beyond ASCII separate words, as spaces do.
private struct SentenceSplitter {
  /// Of the byte that is read next.
  private var line: Int
  /// Of the sentence's first word.
  private var start: Int?
  private var found: [Prose.Sentence] = []
  private var words: [String] = []
  private var word: [UInt8] = []
  private var isCode = false
  /// The mark that ends a sentence if a space follows.
  private var mark: UInt8?

  init(line: Int) { self.line = line }

  mutating func take(_ byte: UInt8) {
    if byte == UInt8(ascii: "\n") { line += 1 }
    if byte == UInt8(ascii: "`") { return takeBacktick() }
    guard !isCode else { return }
    if Self.isWordByte(byte) {
      endMark(isSpace: false)
      start = start ?? line
      return word.append(byte | (byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? 0x20 : 0))
    }
    endMark(isSpace: byte <= UInt8(ascii: " "))
    if Self.ends.contains(byte) {
      mark = byte
    } else {
      endWord()
    }
  }

  mutating func finish() -> [Prose.Sentence] {
    endMark(isSpace: true)
    endSentence(isQuestion: false)
    return found
  }

  private static let ends: Set<UInt8> = [UInt8(ascii: "."), UInt8(ascii: "?"), UInt8(ascii: "!")]
  private static let abbreviations: Set<String> = ["e.g", "i.e", "vs"]

  private static func isWordByte(_ byte: UInt8) -> Bool {
    (byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z"))
      || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")) || byte == UInt8(ascii: "'")
      || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
  }

  private mutating func takeBacktick() {
    endMark(isSpace: false)
    endWord()
    if !isCode { words.append("code") }
    isCode.toggle()
  }

  private mutating func endMark(isSpace: Bool) {
    guard let mark else { return }
    self.mark = nil
    guard isSpace, !Self.abbreviations.contains(String(decoding: word, as: UTF8.self)) else { return word.append(mark) }
    endSentence(isQuestion: mark == UInt8(ascii: "?"))
  }

  private mutating func endWord() {
    while let last = word.last, Self.ends.contains(last) || last == UInt8(ascii: "-") { word.removeLast() }
    if !word.isEmpty { words.append(String(decoding: word, as: UTF8.self)) }
    word = []
  }

  private mutating func endSentence(isQuestion: Bool) {
    endWord()
    if !words.isEmpty { found.append(Prose.Sentence(line: start ?? line, words: words, isQuestion: isQuestion)) }
    (words, start) = ([], nil)
  }
}
