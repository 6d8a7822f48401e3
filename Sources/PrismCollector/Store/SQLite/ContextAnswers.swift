import PrismSQLite

/// A question about a context that a statement asks by the function `prism_context`.
struct ContextQuestion {
  let number: Int
  /// Returns one value for the context `:common`.
  let sql: String
  /// Its other parameters.
  var values: [(parameter: StaticString, value: String)]

  func isSame(as other: Self) -> Bool {
    number == other.number && sql == other.sql && values.map(\.value) == other.values.map(\.value)
  }
}

/// Answers the questions of one statement at a time, each once for a context: reports of one session share theirs.
final class ContextAnswers {
  private struct Asked {
    let question: ContextQuestion
    let statement: SQLiteStatement
    var answers: [Int64: SQLValue] = [:]
    var last: (context: Int64, answer: SQLValue)?
  }

  private static let answersMax = 65_536

  private let connection: SQLiteConnection
  private let contexts: ContextReader
  /// By their numbers.
  private var asked: [Asked?] = []
  private var failure: SQLiteError?

  /// - Parameter connection: of which this defines `prism_context`. It keeps no reference.
  init(_ connection: SQLiteConnection, _ contexts: ContextReader) throws(SQLiteError) {
    (self.connection, self.contexts) = (connection, contexts)
    try connection.define("prism_context") { [weak self] number, context in
      self?.answer(Int(truncatingIfNeeded: number), context) ?? .null
    }
  }

  /// Before a statement is run that asks these questions.
  func begin(_ questions: [ContextQuestion]) throws(SQLiteError) {
    failure = nil
    let before = asked.compactMap { $0?.question }
    if before.count == questions.count, zip(before, questions).allSatisfy({ $0.isSame(as: $1) }) { return }
    asked = [Asked?](repeating: nil, count: (questions.map(\.number).max() ?? -1) + 1)
    for question in questions.sorted(by: { $0.number < $1.number }) {
      let statement = try connection.prepare(question.sql)
      for value in question.values { statement.bind(value.parameter, value.value) }
      asked[question.number] = Asked(question: question, statement: statement)
    }
  }

  /// After the statement. - Throws: where a context could not be read.
  func end() throws(SQLiteError) { if let failure { throw failure } }

  private func answer(_ number: Int, _ context: Int64) -> SQLValue {
    guard asked.indices.contains(number), let question = asked[number] else { return .null }
    if let last = question.last, last.context == context { return last.answer }
    do throws(SQLiteError) {
      let answer = if let known = question.answers[context] { known } else { try ask(question, context) }
      if question.answers.count >= Self.answersMax { asked[number]?.answers = [:] }
      asked[number]?.answers[context] = answer
      asked[number]?.last = (context, answer)
      return answer
    } catch {
      failure = error
      return .null
    }
  }

  private func ask(_ question: Asked, _ context: Int64) throws(SQLiteError) -> SQLValue {
    guard let common = try contexts.common(context) else { return .null }
    return try common.withUnsafeBytes { bytes -> Result<SQLValue, SQLiteError> in
      question.statement.bind(":common", uncopiedText: bytes)
      do throws(SQLiteError) { return .success(try question.statement.firstValue()) } catch { return .failure(error) }
    }.get()
  }
}
