import CYAML

/// A text's YAML events, one after another, from libyaml. Not Sendable: it lives within one call of the parser.
final class YAMLEventStream {
  enum Event {
    case alias
    case scalar(YAMLScalar, isTagged: Bool, isAnchored: Bool)
    case sequenceStart(isTagged: Bool, isAnchored: Bool)
    case mappingStart(isTagged: Bool, isAnchored: Bool)
    case collectionEnd
    case documentStart, documentEnd, streamStart, streamEnd
  }

  // libyaml keeps pointers to the parser and to the text, so both need an address of their own.
  private let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
  private let text: UnsafeMutableBufferPointer<UInt8>

  init(_ bytes: [UInt8]) throws(YAMLFault) {
    text = .allocate(capacity: bytes.count)
    _ = text.initialize(from: bytes)
    // Where it fails it has cleared all that `deinit` frees.
    guard yaml_parser_initialize(parser) == 1 else { throw YAMLFault(line: 1, "there is no memory to read it") }
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
    yaml_parser_set_input_string(parser, text.baseAddress, text.count)
  }

  deinit {
    yaml_parser_delete(parser)
    parser.deallocate()
    text.deallocate()
  }

  /// - Returns: the event and its line, from 1.
  func next() throws(YAMLFault) -> (event: Event, line: Int) {
    var event = yaml_event_t()
    guard yaml_parser_parse(parser, &event) == 1 else { throw syntaxFault() }
    defer { yaml_event_delete(&event) }
    return (Self.event(event), Int(event.start_mark.line) + 1)
  }

  private static func event(_ event: yaml_event_t) -> Event {
    switch event.type {
    case YAML_STREAM_START_EVENT: return .streamStart
    case YAML_DOCUMENT_START_EVENT: return .documentStart
    case YAML_DOCUMENT_END_EVENT: return .documentEnd
    case YAML_ALIAS_EVENT: return .alias
    case YAML_SCALAR_EVENT:
      let scalar = event.data.scalar
      let text = String(decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
      return .scalar(
        YAMLScalar(text: text, isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE), isTagged: scalar.tag != nil,
        isAnchored: scalar.anchor != nil)
    case YAML_SEQUENCE_START_EVENT:
      let start = event.data.sequence_start
      return .sequenceStart(isTagged: start.tag != nil, isAnchored: start.anchor != nil)
    case YAML_MAPPING_START_EVENT:
      let start = event.data.mapping_start
      return .mappingStart(isTagged: start.tag != nil, isAnchored: start.anchor != nil)
    case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT: return .collectionEnd
    default: return .streamEnd
    }
  }

  /// Sentences for libyaml's problems that say what to write. Rare problems keep its own words.
  private static let words = [
    "could not find expected ':'": "a key has no colon; write `key: value`, with a space after the colon",
    "mapping values are not allowed in this context":
      "a colon is where no key can be; here or above it a key lacks the space after its colon, or a value with a colon lacks quotes",
    "did not find expected key":
      "no key can begin here; keys of one map begin in the same column, and nothing follows a closing quote or bracket",
    "did not find expected '-' indicator":
      "an element of a list is expected; each begins with `- `, in the same column",
    "block sequence entries are not allowed in this context": "a list begins on a line of its own, below its key",
    "did not find expected node content": "a value is missing; close a list with `]`, a map in braces with `}`",
    "did not find expected ',' or ']'":
      "a list in brackets is not closed; write commas between its values, and `]` at its end",
    "did not find expected ',' or '}'":
      "a map in braces is not closed; write commas between its keys, and `}` at its end",
    "found unexpected end of stream": "a quote is not closed; write it again at the end of the value",
    "found character that cannot start any token": "no value begins with this character; put the value in quotes",
    "found unknown escape character":
      "no escape of double quotes is written so; in single quotes a backslash is an ordinary character",
  ]

  private func syntaxFault() -> YAMLFault {
    let problem = parser.pointee.problem.map { String(cString: $0) } ?? "not valid YAML"
    if parser.pointee.error == YAML_READER_ERROR {
      return YAMLFault(line: line(at: parser.pointee.problem_offset), problem)
    }
    let context = parser.pointee.context.map { String(cString: $0) }
    // Of a key without a colon libyaml finds out one line later, of an open quote or bracket at the end.
    let isOpen = context?.hasPrefix("while parsing a flow ") == true && problem.contains(" or ")
    let isLate = context == "while scanning a simple key" || problem == "found unexpected end of stream" || isOpen
    let mark = isLate ? parser.pointee.context_mark : parser.pointee.problem_mark
    let line = Int(mark.line) + 1
    let found =
      isIndentedByTab(line)
      ? "a tab cannot indent YAML; write spaces" : Self.words[problem] ?? problem + (context.map { " \($0)" } ?? "")
    return YAMLFault(line: line, "column \(mark.column + 1): \(found)")
  }

  private func line(at offset: Int) -> Int {
    text.prefix(offset).reduce(1) { $1 == UInt8(ascii: "\n") ? $0 + 1 : $0 }
  }

  private func isIndentedByTab(_ line: Int) -> Bool {
    let lines = text.split(separator: UInt8(ascii: "\n"), maxSplits: line, omittingEmptySubsequences: false)
    guard line <= lines.count else { return false }
    return lines[line - 1].prefix { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }.contains(UInt8(ascii: "\t"))
  }
}
