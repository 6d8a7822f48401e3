import PrismBase
import PrismCollector
import PrismProtocol

// The way in which commands ask the API and print what they get.
extension CollectorDesk {
  /// Asks, and closes the store if it was opened for this.
  static func open<Answer>(
    _ options: CollectorOptions, _ body: (CollectorDesk) async throws(Fault) -> Answer
  ) async throws(Flags.Fault) -> Answer {
    do throws(Fault) {
      let desk = try CollectorDesk(options)
      let result: Result<Answer, Fault>
      do throws(Fault) { result = .success(try await body(desk)) } catch { result = .failure(error) }
      await desk.end()
      return try result.get()
    } catch { throw Flags.Fault(exitCode: error.exitCode, message: error.message) }
  }

  /// One thing of a list: a line of JSON, or texts with tabs between them.
  static func printRow(_ value: JSONValue, _ texts: [String?], _ isJSON: Bool) {
    print(isJSON ? OutputText.json(value.text) : texts.map { ($0 ?? "-").printable }.joined(separator: "\t"))
  }
}
