import PrismBase
import PrismConfig
import PrismHTTP
import PrismLinux

/// The parts of the daemon that do not look at the snapshot by themselves: a reload tells them.
struct ReloadableListeners: Sendable {
  let inputs: Inputs
  let control: ControlServer
  let metrics: MetricsServer
  let network: NetlinkMonitor
  let log: Logger
  /// false where the machine has no id to derive one from: `device.id` can't be `auto`.
  let hasAutomaticDeviceID: Bool

  private struct Refused: Error {
    var key: String
    var message: String
  }

  /// Does what the system may refuse. - Throws: the fault, at its key; then all is as it was.
  func take(_ loaded: LoadedConfiguration, before: DaemonConfiguration) async throws(ConfigurationFaults) {
    let new = loaded.snapshot.daemon
    guard new.deviceId != nil || hasAutomaticDeviceID else { throw loaded.fault(at: "device.id", noAutomaticDeviceID) }
    do throws(Refused) { try await set(new) } catch {
      try? await set(before)  // it was granted before
      throw loaded.fault(at: error.key, error.message)
    }
  }

  private func set(_ daemon: DaemonConfiguration) async throws(Refused) {
    do throws(SocketError) {
      try await inputs.server.update(mode: daemon.ingest.mode, group: daemon.ingest.group)
    } catch {
      throw Refused(key: daemon.ingest.group == nil ? "ingest.mode" : "ingest.group", message: error.description)
    }
    do throws(SocketError) {
      try await control.update(group: daemon.control.group, readers: daemon.control.readers)
    } catch { throw Refused(key: "control.group", message: error.description) }
    do throws(EntranceFault) { try await inputs.server.listen(daemon) } catch {
      throw Refused(key: error.key, message: error.reason.description)
    }
    do throws(HTTPServerError) { try await metrics.listen(on: daemon.metricsListen) } catch {
      throw Refused(key: "metrics.listen", message: error.description)
    }
  }

  /// How often an address is tried again that another program has.
  private static let listenInterval: Duration = .seconds(10)

  /// Opens what other programs had at the start, once they give it back.
  /// - Parameter daemon: the settings in force.
  func listenAgain(_ daemon: @Sendable () -> DaemonConfiguration) async {
    while !Task.isCancelled {
      do { try await SystemTime().sleep(for: Self.listenInterval) } catch { return }  // the daemon stops
      let areAwaited = [await inputs.server.listenAgain(daemon()), await metrics.listenAgain()]
      if !areAwaited.contains(true) { return }
    }
  }

  /// Does what can't fail.
  func follow(_ daemon: DaemonConfiguration) async {
    log.set(level: daemon.logLevel, format: daemon.logFormat)
    await network.update(daemon.network)
    await inputs.follow(daemon)
  }
}

let noAutomaticDeviceID = "is auto, but there is no /etc/machine-id to derive it from; set a string"
