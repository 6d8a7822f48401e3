import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore

/// How a namespace's pipeline meets the server's stores: another one, or one that knows less, gets all records again.
enum PipelineStores {
  /// The longest wait before the records are sent to a store that was met, so that stores in turn cost little.
  private static let pauseMax: Duration = .seconds(600)

  /// A receipt named its store.
  static func accepted(_ pipeline: isolated NamespacePipeline, _ receipt: StoreReceipt) {
    guard let store = receipt.store, receipt != pipeline.records.receipt,
      pipeline.settings.configuration?.tables.isEmpty == false
    else { return }
    pipeline.records.receipt = StoreReceipt(store: store, isChainBroken: false)
    pipeline.begin { pipeline in
      do {
        let change = try await pipeline.parts.store.meet(
          store, knowsLess: receipt.isChainBroken, in: pipeline.namespace)
        if change != .same { await met(pipeline, change) }
      } catch { pipeline.records.receipt = nil }  // the next receipt tells it again
    }
  }

  /// The store has noted it. From now on nothing is believed of what was asked before.
  static func met(_ pipeline: isolated NamespacePipeline, _ change: MetStore.Change) async {
    pipeline.records.pulledAt = [:]
    let known = await pipeline.parts.store.records.store(of: pipeline.namespace)
    pipeline.parts.log.warning(
      message(change),
      [
        "namespace": pipeline.namespace.text, "store": known?.met.description ?? "",
        "trusted": known?.trusted.description ?? "",
      ])
    let pause = min(pauseMax, .seconds((1 << min(pipeline.records.meetings, 10)) - 1))
    pipeline.records.meetings += 1
    pipeline.records.pulls.hasten(to: pipeline.now + pause)
    pipeline.records.schedule.hasten(to: pipeline.now + pause)
    pipeline.arm()
  }

  private static func message(_ change: MetStore.Change) -> String {
    switch change {
    case .same: "the server's store is the same"
    case .other:
      "another store answers for the server: its deletions are not taken until `prismctl accept-store`, and all records of "
        + "this device are sent to it"
    case .back: "the server's known store answers again: all records of this device are sent to it"
    case .knowsLess: "the server's store knows less than before: all records of this device are sent to it again"
    }
  }

  /// Marks the records that are to be sent again, slice by slice.
  static func mark(_ pipeline: isolated NamespacePipeline) async {
    guard await pipeline.parts.store.records.store(of: pipeline.namespace)?.isMarking == true else { return }
    do {
      let tables = pipeline.settings.configuration?.tables ?? []
      while try await pipeline.parts.store.markRecords(tables, of: pipeline.namespace), !pipeline.isStopping {}
      pipeline.records.schedule.request(now: pipeline.now)
    } catch {
      pipeline.parts.log.fault(
        "records.store.\(pipeline.namespace)", "records can't be marked to be sent again; tried again",
        ["namespace": pipeline.namespace.text, "cause": error.description])
    }
  }

  /// An operator says that the store which answered last is the server's. - Returns: whether that is news.
  static func accept(_ pipeline: isolated NamespacePipeline) async throws(StoreError) -> Bool {
    let isNews = try await pipeline.parts.store.acceptStore(of: pipeline.namespace)
    pipeline.records.pulls.retry(at: pipeline.now)
    pipeline.arm()
    return isNews
  }
}
