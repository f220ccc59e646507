"""ONNX files of closed programs: what each op becomes stands in its declaration; here are the writer, control flow and files."""
