/// The rules of plain technical English that a program can check, each with its remedy.
enum LanguageRules {
  struct Fault: CustomStringConvertible {
    let path: String
    let line: Int
    let text: String
    var description: String { "\(path):\(line): \(text)" }
  }

  /// A longer sentence is hard to read for an engineer whose second language is English.
  static let sentenceWordsMax = 30

  static func faults(in passages: [Prose.Passage], path: String) -> [Fault] {
    passages.flatMap { passage in
      Prose.sentences(of: passage).flatMap { sentence in
        faults(in: sentence, isFragment: passage.isFragment).map { Fault(path: path, line: sentence.line, text: $0) }
      }
    }
  }

  private static func faults(in sentence: Prose.Sentence, isFragment: Bool) -> [String] {
    var found: [String] = []
    for (index, word) in sentence.words.enumerated() {
      for phrase in banned[word] ?? [] where sentence.words[index...].starts(with: phrase.words) {
        if word == "none" && isValue(index, in: sentence, isFragment: isFragment) { continue }
        found.append("\"\(phrase.words.joined(separator: " "))\": write \(phrase.remedy)")
      }
    }
    guard !isFragment else { return found }
    if !sentence.isQuestion, let first = sentence.words.first, relatives.contains(first) {
      found.append("begins with the relative clause \"\(first) …\": begin with a noun")
    }
    if sentence.words.count > sentenceWordsMax {
      found.append("\(sentence.words.count) words in a sentence, at most \(sentenceWordsMax): make two")
    }
    return found
  }

  /// The faults of a type's name, whose words begin with a capital letter.
  static func faults(inName name: Substring) -> [String] {
    let words = name.matches(of: /[A-Z][a-z]+/).map { String($0.output).lowercased() }
    return words.flatMap { word in
      ((banned[word] ?? []) + (formerNames[word] ?? [])).filter { $0.words == [word] }
        .map { "\(name): for \"\(word)\" write \($0.remedy)" }
    }
  }

  /// Whether "none" is what a table or "Default: none" gives as a value.
  private static func isValue(_ index: Int, in sentence: Prose.Sentence, isFragment: Bool) -> Bool {
    index == 0 ? isFragment : sentence.words[index - 1] == "default"
  }

  private static let relatives: Set<String> = ["what", "who", "whose", "whom"]

  private struct Phrase {
    let words: [String]
    let remedy: String
  }

  /// By the first word.
  private static let banned = byWord(remedies)

  /// Of types only: text may have these words.
  private static let formerNames = byWord([
    (["looks", "look"], "poll, watch"), (["neighbours", "neighbour"], "contention, the other clients"),
    (["meeting", "met"], "merge, comparison"), (["teller"], "sender"),
  ])

  private static func byWord(_ remedies: [([String], String)]) -> [String: [Phrase]] {
    let phrases = remedies.flatMap { forms, remedy in
      forms.map { Phrase(words: $0.split(separator: " ").map(String.init), remedy: remedy) }
    }
    return Dictionary(grouping: phrases) { $0.words[0] }
  }

  /// Forms that hide who acts, that a second-language reader does not know, or that name a thing by its former name.
  private static let remedies: [([String], String)] = [
    (["whoever", "whomever", "nobody", "no one", "he", "his", "him"], "the user, the program or the client"),
    (["none"], "\"no\" and the noun, or nil"),
    (["anew", "thrice", "afar", "whence", "thence", "thereof", "nought", "lest"], "an everyday word"),
    (["whatever", "wherever"], "\"any\" and the noun, or \"if\""),
    (["told", "tells of", "tell of"], "who sends, logs or reports it"),
    (["stands", "stood", "stand in", "stand there"], "is, has, lists"),
    (["so many", "so much"], "the number or the limit"),
    (["comes along", "come along", "comes with prism"], "the thing's name"),
    (["is no news", "hangs on", "is at home", "bring home"], "the fact itself"),
    (["wish", "wishes", "wished"], "request"),
    (["hope", "hopes", "hoped"], "retry trigger"),
    (["lane", "lanes"], "priority"),
    (["desk", "desks"], "handler"),
    (["shelf", "shelves"], "store"),
    (["twin", "twins"], "counterpart"),
    (["bury", "buries", "buried", "burying", "lay aside", "lays aside", "laid aside"], "dead-letter, quarantine"),
    (["forerunner", "forerunners"], "predecessor"),
    (["patience", "impatient"], "timeout"),
    (["thaw", "thaws", "thawed"], "unsent"),
    (["dissolve", "dissolves", "dissolved"], "release"),
    (["guillotine"], "deadline task"),
    (["objection", "objections", "nonsense"], "refusal, error"),
    (["rehearsal", "rehearse", "rehearses"], "dry run"),
    (["waiting room", "waiting rooms"], "predecessor wait"),
  ]
}
