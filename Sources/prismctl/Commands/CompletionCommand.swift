extension Command {
  static let completion = Command(
    words: ["completion"], summary: "print a shell's completion of these commands",
    operands: ["bash|zsh|fish"], sockets: [], example: "source <(prismctl completion bash)"
  ) { invocation throws(Failure) in
    let shell = invocation.operands[0]
    guard let completion = ShellCompletion(rawValue: shell) else {
      throw .usage("there is no completion for `\(shell)`, only for bash, zsh and fish")
    }
    print(completion.script)
  }
}
