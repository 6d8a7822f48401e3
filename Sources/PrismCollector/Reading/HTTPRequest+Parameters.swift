import PrismBase
import PrismConfig
import PrismHTTP

extension HTTPRequest {
  /// A parameter with a typing error would be left out of the question, and the answer be one to another question.
  /// - Throws: 400 for a parameter that is not among `known`, with the nearest one.
  func checkParameters(_ known: [String]) throws(CollectorRefusal) {
    guard let unknown = query.map(\.name).first(where: { !known.contains($0) }) else { return }
    let hint = NearestName.of(unknown, among: known).map { "; did you mean `\($0)`?" } ?? "."
    throw CollectorRefusal(
      400, "`\(unknown.prefix(64))` is no parameter here\(hint) There are \(known.joined(separator: ", "))")
  }
}
