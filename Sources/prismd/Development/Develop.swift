import Glibc
import PrismBase
import PrismLinux
import PrismProtocol

/// `prismd --dev`: the daemon with a collector beside it, everything in one folder. Answers the exit code.
func develop(in path: String, _ signals: SignalRoute) async -> ExitCode {
  let files = DevelopmentFiles(path)
  do throws(StartFailure) {
    let ports = try files.prepare()
    let collector = try DevelopmentCollector(files)
    guard await isListening(ports.packets, collector) else {
      await collector.stop()
      throw StartFailure(
        exitCode: .unavailable, message: "--dev: the collector did not start; see \(files.collectorLog)")
    }
    let watch = Task { await sayWhenEnded(collector, files) }
    let code = await serve(files, page: ports.page, signals)
    watch.cancel()
    await watch.value
    await collector.stop()
    return code
  } catch {
    StandardStreams.say("prismd: \(error.message)\n")
    return error.exitCode
  }
}

private func serve(_ files: DevelopmentFiles, page: UInt16?, _ signals: SignalRoute) async -> ExitCode {
  let isLinked = link(to: files.folder)
  defer { if isLinked { unlink(DevelopmentFolder.link) } }
  return await run(files.folder.configuration, signals, adding: files.add) {
    StandardStreams.say(guide(files, page: page, isLinked: isLinked) + "\n", to: STDOUT_FILENO)
  }
}

/// The daemon goes on without its collector: what a program reports waits for it.
private func sayWhenEnded(_ collector: DevelopmentCollector, _ files: DevelopmentFiles) async {
  while collector.runs {
    do { try await SystemTime().sleep(for: .seconds(1)) } catch { return }
  }
  StandardStreams.say(
    "prismd: --dev: the collector has ended; see \(files.collectorLog); Ctrl-C, then start both again\n")
}

/// Waits until the collector takes connections, at most 10 s.
private func isListening(_ port: UInt16, _ collector: DevelopmentCollector) async -> Bool {
  for _ in 0..<200 where collector.runs {
    if connects(port) { return collector.runs }
    do { try await SystemTime().sleep(for: .milliseconds(50)) } catch { return false }
  }
  return false
}

private func connects(_ port: UInt16) -> Bool {
  withLoopbackSocket(port) { descriptor, address, size in connect(descriptor, address, size) == 0 } ?? false
}

/// Calls `body` with a new TCP socket and the address of a port on 127.0.0.1. - Returns: nil if there is no socket.
func withLoopbackSocket<Result>(
  _ port: UInt16, _ body: (Int32, UnsafeMutablePointer<sockaddr>, socklen_t) -> Result
) -> Result? {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
  guard descriptor >= 0 else { return nil }
  defer { close(descriptor) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  return withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
}

/// Makes the link that `prismctl` follows. That of a daemon that ended is replaced; that of one that runs, and what is another
/// user's, is left alone. - Returns: whether it leads here.
private func link(to folder: DevelopmentFolder) -> Bool {
  guard DevelopmentFolder.running == nil else { return false }
  var facts = stat()
  let path = DevelopmentFolder.link
  if lstat(path, &facts) == 0, facts.st_mode & S_IFMT == S_IFLNK, facts.st_uid == getuid() { unlink(path) }
  return symlink(folder.path, path) == 0
}

private func guide(_ files: DevelopmentFiles, page: UInt16?, isLinked: Bool) -> String {
  let control = isLinked ? "prismctl" : "prismctl --control \(files.folder.controlSocket)"
  let send = isLinked ? "prismctl" : "prismctl --ingest \(files.folder.ingestSocket)"
  let pageLine =
    page.map { "\n  page:       http://127.0.0.1:\($0)/\n              each user of this machine is an operator" } ?? ""
  return """
    prismd and a collector run in \(files.folder.path); Ctrl-C ends both.
      report:     \(send) send --type net --meta '{"ms":12}'
      look:       \(control) status, \(control) top, \(control) doctor\(pageLine)
      reports:    curl -s --unix-socket \(files.readerSocket) http://prism/reports
      configure:  \(files.folder.configuration), namespaces.d/ beside it; a change is taken over when it is saved
      libraries:  export PRISM_INGEST=\(files.folder.ingestSocket) PRISM_CRASH_SPOOL=\(files.crashSpool)
    """
}
