public import PrismBase
public import PrismConfig

/// The configuration of a start before any answer: the files, and on top the remote configuration of the last run.
public struct RemoteStart: Sendable {
  /// The files under the cached layer, to be put in force.
  public let current: LoadedConfiguration
  let files: LoadedConfiguration
  let state: RemoteState
  let saved: RemoteRecord?

  /// Never fails: a cache that is damaged, or that the files don't bear any more, is said and not used.
  public static func recall(
    files: LoadedConfiguration, cache: any KeptFile, time: any TimeSource, log: Logger
  ) async -> RemoteStart {
    guard let source = files.snapshot.daemon.remote, let record = await read(cache, log) else {
      return RemoteStart(current: files, files: files, state: RemoteState(), saved: nil)
    }
    var state = RemoteState(record, source: source)
    do {
      let current = try files.applying(remote: Array(state.layer.entries.values))
      return RemoteStart(current: current, files: files, state: state, saved: record)
    } catch {
      log.error("the cached remote configuration does not fit the files and is not used", ["cause": error.description])
      _ = state.handle(.dropped(reason: error.description), now: Instant(time), random: 0)
      return RemoteStart(current: files, files: files, state: state, saved: nil)
    }
  }

  private static func read(_ cache: any KeptFile, _ log: Logger) async -> RemoteRecord? {
    var damage = ""
    do throws(KeptFileFault) {
      guard let bytes = try await cache.read(bytesMax: RemoteRecord.bytesMax) else { return nil }
      do throws(RemoteRecord.Damaged) { return try RemoteRecord(bytes: bytes) } catch { damage = error.description }
      let place = try await cache.setAside()
      log.error("the cached remote configuration is damaged and set aside", ["cause": damage, "path": place])
    } catch {
      log.error("the cached remote configuration can't be used", ["cause": "\(error.description) \(damage)"])
    }
    return nil
  }
}
