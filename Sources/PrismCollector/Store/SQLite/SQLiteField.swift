/// A question about one field of a meta in SQLite's SQL. A report's own members answer it, if they have the field's first key.
/// Otherwise its context answers it, once for all reports, by the function `prism_context`.
struct SQLiteField {
  /// Names of parameters, and the question's number.
  struct Names {
    let number: Int
    let key: StaticString, path: StaticString, first: StaticString, firstPath: StaticString
  }

  private let path: [String]
  private let names: Names
  /// The answer for a meta that does not have the field's last key, or is damaged.
  private let otherwise: String
  /// The answer, by the SQL of a meta.
  private let answer: (String) -> String

  init(_ path: [String], _ names: Names, otherwise: String, _ answer: @escaping (String) -> String) {
    (self.path, self.names, self.otherwise, self.answer) = (path, names, otherwise, answer)
  }

  var sql: String {
    let own = guarded("r.meta")
    let (first, firstPath) = path.count == 1 ? (names.key, names.path) : (names.first, names.firstPath)
    return """
      CASE WHEN r.context IS NOT NULL AND (instr(r.meta, \(first)) = 0 OR NOT json_valid(r.meta)
        OR json_type(r.meta, \(firstPath)) IS NULL) THEN prism_context(\(names.number), r.context) ELSE \(own) END
      """
  }

  /// The same about a context.
  var question: ContextQuestion {
    ContextQuestion(
      number: names.number, sql: "SELECT \(guarded("c.common")) FROM (SELECT :common AS common) c",
      values: questionValues)
  }

  /// The parameters of `sql`.
  var values: [(parameter: StaticString, value: String)] {
    guard path.count > 1 else { return questionValues }
    return questionValues + [(names.first, Self.key(path.first)), (names.firstPath, Self.path(path.prefix(1)))]
  }

  private var questionValues: [(parameter: StaticString, value: String)] {
    [(names.key, Self.key(path.last)), (names.path, Self.path(path[...]))]
  }

  /// A meta is parsed only if it has the key somewhere, and not at all if it is damaged.
  private func guarded(_ meta: String) -> String {
    "CASE WHEN instr(\(meta), \(names.key)) = 0 OR NOT json_valid(\(meta)) THEN \(otherwise) ELSE \(answer(meta)) END"
  }

  private static func key(_ key: String?) -> String { "\"\(key ?? "")\"" }
  private static func path(_ path: ArraySlice<String>) -> String { "$" + path.map { ".\"\($0)\"" }.joined() }
}
