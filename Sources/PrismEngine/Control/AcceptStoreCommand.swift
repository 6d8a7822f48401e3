import PrismProtocol
import PrismStore

/// `prismctl accept-store`: an operator says that the store which answered last is the server's.
struct AcceptStoreCommand {
  private let handler: ControlHandler

  init(_ handler: ControlHandler) { self.handler = handler }

  func run(_ request: ControlRequest) async throws(ControlHandler.Refused) -> [JSONValue.Member] {
    guard let namespace = try handler.namespace(request) else {
      throw ControlHandler.Refused(64, "accept-store: of which namespace?")
    }
    guard let pipeline = await handler.engine.pipelines[namespace] else { throw handler.unknown(namespace) }
    guard let met = await handler.engine.parts.store.records.store(of: namespace)?.met else {
      throw ControlHandler.Refused(
        1, "no store of \(namespace) gave its identity yet: it has no table of records, or an older collector")
    }
    do {
      let isNews = try await PipelineStores.accept(pipeline)
      let text =
        isNews
        ? "the store \(met) is accepted: its deletions are taken, and records that it does not have are deleted"
        : "the store \(met) was accepted before"
      return [.init("text", .string(text))]
    } catch { throw ControlHandler.Refused(69, error.description) }
  }
}
